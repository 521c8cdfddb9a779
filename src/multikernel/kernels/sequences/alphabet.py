"""Alphabets: letter -> code 0, ..., size - 1; every other character has the code size, "unknown".

An unknown letter matches nothing, not even itself. This is the rule for IUPAC ambiguity codes as well: N, R, Y and
the others of nucleotides, B, J, O, U, X, Z of proteins, gaps and stops. A k-mer that holds one does not exist, so that
every kernel stays an inner product of counts. In DNA the letter U is read as T, in RNA the letter T as U.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def look_up(table, characters, out):
    """out_t = table[characters_t]."""
    for t in range(characters.shape[0]):
        out[t] = table[characters[t]]


@njit(cache=True, nogil=True)
def histogram(characters):
    """Return how often each of the 256 characters occurs."""
    # four tables in turn: the processor need not wait for one sum before it adds to the next
    counts = np.zeros((4, 256), np.int64)
    m = characters.shape[0]
    for t in range(m // 4):
        for r in range(4):
            counts[r, characters[4 * t + r]] += 1
    for t in range(m // 4 * 4, m):
        counts[0, characters[t]] += 1
    return counts[0] + counts[1] + counts[2] + counts[3]


# nucleotides, their ambiguity codes, and the gap
_IUPAC = b"ACGTURYSWKMBDHVN-"
# the twenty amino acids, ambiguous and rare ones, the stop and the gap
_RESIDUES = b"ACDEFGHIKLMNPQRSTVWYBJOUXZ*-"
# Share of certain letters (nucleotides and N, or the twenty amino acids) from which a text of these codes is taken for
# DNA, RNA or a protein: a lower one mistakes other texts for sequences.
_CERTAIN = 0.9
# letters of an alphabet: a code is one byte, and one code means an unknown letter
_LARGEST = np.iinfo(np.uint8).max


def _upper(letter: int) -> int:
    """Return the upper case of a letter of Latin-1, itself where that is no single letter of Latin-1."""
    upper = chr(letter).upper()
    return ord(upper) if len(upper) == 1 and ord(upper) < 256 else letter


def _other_case(letter: int) -> int:
    """Return the other case of a letter of Latin-1, itself where that is no single letter of Latin-1."""
    other = chr(letter).swapcase()
    return ord(other) if len(other) == 1 and ord(other) < 256 else letter


@dataclass(frozen=True)
class Alphabet:
    """The letters that sequences are made of, in the order of their codes.

    Upper and lower case are the same letter, unless the alphabet holds both.

    Parameters
    ----------
    letters : str
        Distinct letters of Latin-1, at most 255.
    synonyms : str
        Pairs of letters of which the first is read as the second.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Alphabet, DNA
    >>> Alphabet("01").size, DNA.letters
    (2, 'ACGT')
    """

    letters: str
    synonyms: str = ""
    table: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        if not isinstance(self.letters, str) or not 1 <= len(self.letters) <= _LARGEST:
            raise ValueError(f"An alphabet must be a text of 1 to {_LARGEST} letters. Got {self.letters!r} instead.")
        if len(set(self.letters)) < len(self.letters):
            raise ValueError(f"The letters of an alphabet must be distinct. Got {self.letters!r} instead.")
        try:
            codes = self.letters.encode("latin-1")
        except UnicodeEncodeError as error:
            raise ValueError(f"The letters of an alphabet must be in Latin-1. Got {self.letters!r} instead.") from error
        table = np.full(256, len(codes), np.uint8)
        table[list(codes)] = np.arange(len(codes))
        for other, letter in zip(self.synonyms[::2], self.synonyms[1::2], strict=True):
            table[ord(other)] = table[ord(letter)]
        for code in range(256):
            if table[code] == len(codes):
                table[code] = table[_other_case(code)]
        table.setflags(write=False)
        object.__setattr__(self, "table", table)

    @property
    def size(self) -> int:
        """The number of letters, which is also the code of an unknown one."""
        return len(self.letters)

    def __reduce__(self):
        return Alphabet, (self.letters, self.synonyms)


DNA = Alphabet("ACGT", "UT")
"""The four bases of DNA; U is read as T."""
RNA = Alphabet("ACGU", "TU")
"""The four bases of RNA; T is read as U."""
PROTEIN = Alphabet("ACDEFGHIKLMNPQRSTVWY")
"""The twenty amino acids."""
_NAMED = {"dna": DNA, "rna": RNA, "protein": PROTEIN}


def as_alphabet(alphabet) -> Alphabet:
    """Return an alphabet from its name ('dna', 'rna', 'protein'), its letters, or itself.

    Examples
    --------
    >>> from multikernel.kernels.sequences.alphabet import as_alphabet
    >>> as_alphabet("dna").letters, as_alphabet("HP").letters
    ('ACGT', 'HP')
    """
    if isinstance(alphabet, Alphabet):
        return alphabet
    if isinstance(alphabet, str):
        return _NAMED.get(alphabet.lower()) or Alphabet(alphabet)
    raise ValueError(
        f"An alphabet must be 'dna', 'rna', 'protein', a text of letters or an Alphabet. Got {alphabet!r} instead."
    )


def infer_alphabet(characters: np.ndarray) -> Alphabet:
    """Return the alphabet of a text, given as bytes.

    DNA where all characters are IUPAC codes of nucleotides and at least nine of ten are A, C, G, T or N; RNA
    where U stands for T; proteins where all are codes of residues and at least nine of ten are one of the twenty;
    otherwise the letters that occur.

    Parameters
    ----------
    characters : uint8 array
        The text.
    """
    seen = histogram(characters)
    counts = np.zeros(256, np.int64)
    for letter in np.flatnonzero(seen):
        counts[_upper(int(letter))] += seen[letter]
    letters = np.flatnonzero(counts)
    certain = counts[list(b"ACGTUN")].sum()
    if np.isin(letters, list(_IUPAC)).all() and certain >= _CERTAIN * counts.sum():
        return RNA if counts[ord("U")] > counts[ord("T")] else DNA
    certain = counts[list(PROTEIN.letters.encode())].sum()
    if np.isin(letters, list(_RESIDUES)).all() and certain >= _CERTAIN * counts.sum():
        return PROTEIN
    if len(letters) > _LARGEST:
        raise ValueError(f"Sequences must be made of at most {_LARGEST} letters. Got {len(letters)} instead.")
    return Alphabet(bytes(letters.tolist()).decode("latin-1"))
