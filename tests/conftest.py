"""The folder of this file is where tests import shared problems, references and certificates from."""
