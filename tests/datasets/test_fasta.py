"""The FASTA reader: every record that can be read, every other one with its place; and no crash on any bytes."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multikernel.datasets import FastaError, FastaRecords, dna, read_fasta


def read(data, **options):
    return read_fasta(io.BytesIO(data), errors="collect", **options)


def test_a_file_plain_or_compressed_from_a_path_or_a_stream(tmp_path):
    text = ">one first gene\nACGT\nACG\n\n>two\tsecond\r\nTT TT\r\n; a comment\n>three\nnnN-*"
    expected = (["one", "two", "three"], ["first gene", "second", ""], ["ACGTACG", "TTTT", "nnN-*"])
    plain, packed = tmp_path / "a.fa", tmp_path / "a.anything"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    for source in (plain, str(plain), packed, io.StringIO(text), io.BytesIO(text.encode()), packed.open("rb")):
        records = read_fasta(source, errors="raise")
        assert (records.ids, records.descriptions, records.sequences) == expected
        assert records.lines == [1, 5, 8] and len(records) == 3 and not records.problems
    frame = records.to_frame()
    assert list(frame.columns) == ["id", "description", "sequence"] and frame["sequence"][1] == "TTTT"
    assert repr(records) == "<3 FASTA records, 0 problems>"
    # line ends of the oldest systems
    assert read(b">a\rAC\rGT\r>b\rTT").sequences == ["ACGT", "TT"]


def test_every_problem_has_its_line_and_record_and_the_rest_is_read():
    data = b"ACGT\nTT\n>one\nAC\n>\nGG\n>three\n>four\nACGT\nAC7T\nA!A\n>five\nTT\xc3\xa9\n>six\nG\xffG\n>seven\nCC\n"
    records = read(data)
    assert records.ids == ["one", "seven"] and records.sequences == ["AC", "CC"]
    assert [(each.line, each.record, each.id) for each in records.problems] == [
        (1, 0, ""), (5, 2, ""), (7, 3, "three"), (10, 4, "four"), (13, 5, "five"), (15, 6, "six"),
    ]  # fmt: skip
    messages = [each.message for each in records.problems]
    assert messages[3] == "'7' is not a letter of a sequence" and "'é'" in messages[4] and "0xff" in messages[5]
    with pytest.warns(UserWarning, match=r"6 FASTA records were left out: line 1, record 0: .*; and 5 more"):
        read_fasta(io.BytesIO(data))
    with pytest.raises(FastaError, match=r"^Line 1, record 0: there are letters before the first header.$"):
        read_fasta(io.BytesIO(data), errors="raise")
    with pytest.raises(FastaError, match=r"^Line 4, record 2 \('b'\): there is no sequence after the header.$"):
        read_fasta(io.BytesIO(b">a\nA\n\n>b"), errors="raise")
    with pytest.warns(UserWarning, match="1 FASTA record was left out: line 1, record 0: there are no records"):
        assert len(read_fasta(io.BytesIO(b"\n\n"))) == 0


def test_letters_follow_the_alphabet():
    data = b">a\nACGTUNRY-\n>b\nACGL\n>c\nMKL*\n"
    assert read(data).ids == ["a", "b", "c"] and read(data, alphabet="protein").ids == ["a", "b", "c"]
    records = read(data, alphabet="dna")
    assert records.ids == ["a"] and [each.line for each in records.problems] == [4, 6]
    for name in ("alphabet", "errors"):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of read_fasta must be"):
            read_fasta(io.BytesIO(data), **{name: "other"})
    with pytest.raises(TypeError, match="must be a path or a stream"):
        read_fasta(7)
    with pytest.raises(FileNotFoundError):
        read_fasta("no such file")


def test_damaged_compression_keeps_what_was_read():
    text = "".join(f">r{i}\n{s.decode()}\n" for i, s in enumerate(dna(400)[0]))
    packed = gzip.compress(text.encode())
    for damaged in (packed[:-3000], packed[:-3], packed[:5000] + b"\0\1\2" + packed[5003:]):
        records = read(damaged)
        assert len(records.problems) >= 1 and "damaged" in records.problems[-1].message
        assert records.problems[-1].line == 2 * records.problems[-1].record + 1 or len(records) < 400
        good = [s for s in records.sequences if s in text]
        assert len(good) >= len(records) - 1
    assert "damaged" in read(packed[:10]).problems[0].message


@pytest.mark.parametrize("packed", [False, True])
def test_corrupted_records_are_found_among_many(packed):
    n, wrong = 20_000, 200
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.choice(n, wrong, replace=False))
    lines, places = [], {}
    for i, sequence in enumerate(dna(n, 60)[0]):
        header, body = f">r{i}", sequence.decode()
        if i in chosen:
            kind = int(rng.integers(3))
            places[i + 1] = len(lines) + (2 if kind == 0 else 1)
            header, body = [(header, body[:9] + "&"), (">", body), (header, "")][kind]
        lines += [header, body]
    data = "\n".join(lines).encode()
    records = read(gzip.compress(data, 1) if packed else data)
    assert {each.record: each.line for each in records.problems} == places
    assert len(records) == n - wrong and set(records.ids).isdisjoint(f"r{i}" for i in chosen)


PIECES = st.sampled_from([
    b">", b">id", b">id text", b"\n", b"\r", b"\r\n", b"ACGT", b"acgn-", b" ", b"\t", b";", b"\0", b"\xff", b"7",
    b"\x1f\x8b",
])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=20).map(b"".join)), st.booleans())
@example(b"\x1f\x8b", False)
@example(b"\x1f", False)
def test_no_bytes_make_the_reader_fail(data, packed):
    if packed:
        data = gzip.compress(data)
    records = read(data)
    assert isinstance(records, FastaRecords)
    assert len(records.ids) == len(records.descriptions) == len(records.sequences) == len(records.lines)
    assert all(records.sequences) and all(records.ids)
    assert records.lines == sorted(set(records.lines))
    # nothing is lost in silence: every header is a record or a problem
    if not packed and not data.startswith(b"\x1f\x8b"):
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        headers = [t for t, line in enumerate(lines, 1) if line.startswith(b">")]
        assert len(records) + len({each.record for each in records.problems if each.record}) == len(headers)
        assert set(records.lines) <= set(headers)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if records.problems:
                with pytest.raises(FastaError, match=r"^Line "):
                    read_fasta(io.BytesIO(data), errors="raise")
            else:
                assert read_fasta(io.BytesIO(data)).sequences == records.sequences


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail(text):
    records = read_fasta(io.StringIO(text), errors="collect")
    assert len(records) <= text.count(">")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.sampled_from("abcXYZ019_|."), min_size=1, max_size=9),
            st.text(st.sampled_from("ACGTNacgtn-"), min_size=1),
        ),
        min_size=1,
    ),
    st.integers(1, 70),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_what_was_written_is_read(records, width, end, packed):
    lines = []
    for name, sequence in records:
        lines += [f">{name} of mine", *(sequence[t : t + width] for t in range(0, len(sequence), width))]
    data = end.join(lines).encode()
    found = read(gzip.compress(data) if packed else data)
    assert list(zip(found.ids, found.sequences, strict=True)) == records and not found.problems
