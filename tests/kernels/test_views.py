"""Views: what they are made from, their rows, their encoding, and the samples that lack them."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing

from multikernel import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    TwoStageClassifier,
    Views,
    column_groups,
    make_views,
    read_gmt,
    stack_kernels,
)
from multikernel.kernels import RBF, Gower, KernelBank, Linear, Stacked, per_column, per_group, view_of
from multikernel.kernels.views.encoders import ColumnEncoder, TermEncoder

N = 60


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def data(rng):
    """Four views of different types, each with gaps, and classes."""
    rna, protein = rng.normal(size=(N, 6)), rng.normal(size=(N, 3))
    y = np.where(protein[:, 0] + 0.5 * rna[:, 0] > 0, "sick", "well")
    protein[:10] = np.nan
    rna[3, 2] = np.nan
    clinical = pd.DataFrame({"stage": rng.choice(["I", "II", "III"], N), "age": rng.integers(30, 80, N)})
    clinical.loc[4, "stage"] = None
    dna = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(N)]
    dna[7] = None
    return {"rna": rna, "protein": protein, "clinical": clinical, "dna": dna}, y


def spectrum_of(K):
    return np.linalg.eigvalsh((K + K.T) / 2)


# ---- what views are made from


def test_views_are_indexed_by_rows_as_scikit_learn_does(data):
    X = Views(data[0])
    assert X.shape == (N, 4) and len(X[10:20]) == 10 and X.names == list(data[0])
    for rows in (np.arange(5), [0, 2, 4], np.arange(N) < 5, slice(0, 5)):
        part = _safe_indexing(X, rows)
        assert isinstance(part, Views)
        np.testing.assert_array_equal(part["rna"], data[0]["rna"][rows])
    assert len(X[5:][[0, 1]]) == 2 and X[5:][[0, 1]].index.tolist() == [5, 6]
    assert list(X["clinical"].columns) == ["stage", "age"] and Views(X).names == X.names
    with pytest.raises(KeyError, match="There is no view 'mirna'"):
        X["mirna"]


def test_views_say_what_is_missing(data):
    X = Views(data[0])
    assert X.missing() == {
        "rna": {"samples": 0, "values": 1},
        "protein": {"samples": 10, "values": 0},
        "clinical": {"samples": 0, "values": 1},
        "dna": {"samples": 1, "values": 0},
    }
    assert "protein 3 columns, 10 samples lack it" in repr(X) and "1 value is missing" in repr(X)
    assert X[20:].missing() == {} and "1 sample lacks it" in repr(X[:9])
    model = MKLClassifier("auto").fit(data[0], data[1])
    assert model.missing_in_ == X.missing()


def test_frames_are_aligned_by_their_index(rng):
    a = pd.DataFrame(rng.normal(size=(4, 2)), index=list("wxyz"))
    b = pd.DataFrame(rng.normal(size=(3, 2)), index=list("zvx"))
    X = Views({"a": a, "b": b, "plain": np.arange(5.0)[:, None]})
    assert X.index.tolist() == ["w", "x", "y", "z", "v"]
    assert X.missing() == {"a": {"samples": 1, "values": 0}, "b": {"samples": 2, "values": 0}}
    np.testing.assert_array_equal(X["b"][[1, 3]], b.loc[["x", "z"]])
    with pytest.raises(ValueError, match="The view 'plain' must have 5 samples, as the joint index of the others has"):
        Views({"a": a, "b": b, "plain": np.ones((4, 1))})
    with pytest.raises(ValueError, match=r"index of the view 'a' must name each sample once. Got 'w' again"):
        Views({"a": a.rename(index={"x": "w"})})


def test_columns_of_one_table_become_views(rng):
    table = pd.DataFrame(rng.normal(size=(5, 4)), columns=["gene_a", "gene_b", "age", "sex"])
    groups = {"rna": "gene_*", "prefix": "gene_", "names": ["age", "sex"], "mask": [True, False, False, False]}
    found = column_groups(table, {**groups, "selected": make_column_selector("^gene"), "slice": slice("age", "sex")})
    assert {name: list(part.columns) for name, part in found.items()} == {
        "rna": ["gene_a", "gene_b"], "prefix": ["gene_a", "gene_b"], "names": ["age", "sex"], "mask": ["gene_a"],
        "selected": ["gene_a", "gene_b"], "slice": ["age", "sex"],
    }  # fmt: skip
    assert Views(table, ["gene_*", "age"]).names == ["gene", "age"]
    assert Views(table).names == ["X"] and Views(np.eye(3), {"left": [0, 1]})["left"].shape == (3, 2)
    with pytest.raises(ValueError, match=r"The columns of the view 'b' must be columns of the data frame. Got 'mir"):
        Views(table, {"b": "mir_*"})
    for wrong in ({}, 3):
        with pytest.raises(ValueError, match="The 'groups' parameter must be a mapping"):
            column_groups(table, wrong)


def test_patterns_choose_columns_of_kernels(rng):
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=["gene_a", "gene_b", "age"])
    y = table["gene_a"] > 0
    model = MKLClassifier([("rna", "rbf", "gene_*"), ("age", "linear", "age")]).fit(table, y)
    assert model.score(table, y) > 0.9 and cross_val_score(model, table, y, cv=3).mean() > 0.7
    bank = KernelBank.fit(per_group("linear", {"rna": "gene_*"}), table)
    assert bank.columns == [(0, 1)]


def test_gene_sets_of_a_file(tmp_path, rng):
    path = tmp_path / "sets.gmt"
    path.write_text("APOPTOSIS\tlink\tTP53\tBAX\tTP53\n\nOTHER\tlink\tXYZ\n")
    assert read_gmt(path) == {"APOPTOSIS": ["TP53", "BAX"], "OTHER": ["XYZ"]}
    table = pd.DataFrame(rng.normal(size=(5, 2)), columns=["TP53", "MYC"])
    assert Views(table, path).names == ["APOPTOSIS"]
    with pytest.raises(ValueError, match="gene sets must name columns"):
        Views(table.rename(columns=str.lower), str(path))
    path.write_text("APOPTOSIS only")
    with pytest.raises(ValueError, match="Line 1 of the GMT file"):
        read_gmt(path)


def annotated(X, names, genes, **obsm):
    """Stand in for AnnData: what is read of it."""
    return SimpleNamespace(X=X, obs_names=pd.Index(names), var_names=pd.Index(genes), obsm=obsm)


def test_annotated_data(rng, tmp_path):
    names = [f"cell{i}" for i in range(30)]
    rna = annotated(sparse.csr_array(rng.poisson(1.0, (30, 4))), names, list("abcd"), X_pca=rng.normal(size=(30, 2)))
    assert Views(rna).names == ["X", "X_pca"] and Views(rna).shape == (30, 2)
    (tmp_path / "s.gmt").write_text("S\t-\ta\tb\n")
    assert Views(rna, tmp_path / "s.gmt").names == ["S", "X_pca"]
    protein = annotated(rng.normal(size=(20, 3)), names[::-1][:20], list("xyz"))
    both = SimpleNamespace(mod={"rna": rna, "protein": protein}, obs_names=pd.Index(names[::-1]))
    X = Views(both)
    assert X.names == ["rna", "rna.X_pca", "protein"] and X.index.tolist() == names[::-1]
    assert X.missing() == {"protein": {"samples": 10, "values": 0}}
    assert Views(both, {"rna": tmp_path / "s.gmt"}).names == ["rna.S", "rna.X_pca", "protein"]
    y = rng.integers(0, 2, 30)
    assert MKLClassifier("auto").fit(both, y).predict(both).shape == (30,)


def test_annotated_data_as_the_libraries_make_them(rng):
    anndata = pytest.importorskip("anndata")
    X = anndata.AnnData(rng.normal(size=(20, 3)))
    X.obsm["pca"] = rng.normal(size=(20, 2))
    assert Views(X).names == ["X", "pca"]


class Polars:
    """Stand in for a data frame of polars: columns by name, no index, types of its own."""

    def __init__(self, columns):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns, self.dtypes = list(columns), [object] * len(columns)
        self.shape = len(next(iter(self._columns.values()))), len(columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __len__(self):
        return self.shape[0]


def test_frames_of_other_libraries(rng):
    table = Polars({"gene_a": rng.normal(size=30), "gene_b": rng.normal(size=30), "sex": rng.choice(["f", "m"], 30)})
    y = table["gene_a"] > 0
    X = Views(table, {"rna": "gene_*", "sex": "sex"})
    assert X["rna"].shape == (30, 2)
    model = MKLClassifier([("rna", RBF(), "gene_*")]).fit(table, y)
    assert model.score(table, y) > 0.9
    assert MKLClassifier("auto").fit(table, y).score(table, y) > 0.9


def test_sequences_of_a_file_and_arrays_of_a_file(tmp_path, rng):
    (tmp_path / "genes.fasta").write_text(">a\nACGT\n>c\nAAAA\n")
    np.save(tmp_path / "rna.npy", rng.normal(size=(3, 2)))
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=list("abc"))
    X = Views({"dna": tmp_path / "genes.fasta", "table": table, "rna": str(tmp_path / "rna.npy")})
    assert X.missing() == {"dna": {"samples": 1, "values": 0}} and X.index.tolist() == ["a", "c", "b"]
    with pytest.raises(ValueError, match=r"The view 'rna' must be samples, or the path of a FASTA or .npy file"):
        Views({"rna": "rna.tsv"})


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({}, ValueError, "Views must hold at least one view"),
        ({"a": np.ones((2, 2)), "b": np.ones((3, 2))}, ValueError, "The view 'b' must have 2 samples, as the view 'a'"),
        ({"a": np.ones((2, 2, 2))}, ValueError, r"The view 'a' must have shape \(n, d\)"),
        ({"a": np.array([["x", "y"]], object)}, ValueError, "The view 'a' must be numbers, texts, or a data frame"),
        ({"a": ["AC", 3]}, ValueError, "The view 'a' must be texts. Got 3 in row 1"),
        ({"a__b": np.ones((2, 2))}, ValueError, "The names of views must be texts without"),
        (3, TypeError, "Views must be a dict or a list of tables"),
    ],
)
def test_what_is_no_view_is_named(given, error, sentence):
    with pytest.raises(error, match=sentence):
        Views(given)


# ---- estimators


def test_estimators_take_a_dict_a_list_and_views(data, rng):
    named, y = data
    numbers = {name: named[name] for name in ("rna", "protein")}
    model = MKLClassifier().fit(numbers, y)
    listed = MKLClassifier().fit(list(numbers.values()), y)
    np.testing.assert_allclose(model.decision_function(numbers), listed.decision_function(list(numbers.values())))
    assert {view_of(name) for name in model.kernel_names_} == {"rna", "protein"}
    assert model.n_features_in_ == 2 and list(model.feature_names_in_) == ["rna", "protein"]
    # other orders of the views are put right, other views refused
    turned = {name: numbers[name] for name in ("protein", "rna")}
    np.testing.assert_array_equal(model.decision_function(turned), model.decision_function(numbers))
    with pytest.raises(ValueError, match="must hold the views of fit"):
        model.predict({"rna": named["rna"]})
    with pytest.raises(ValueError, match="must hold the views of fit"):
        model.predict({**numbers, "more": named["rna"]})
    with pytest.raises(ValueError, match="needs at least one sample"):
        MKLClassifier().fit(Views(numbers)[:0], y[:0])
    with pytest.raises(ValueError, match=r"The view 'rna' must have 6 columns, as in fit. Got 5 instead"):
        model.predict({**numbers, "rna": named["rna"][:, :5]})


def test_kernels_by_view(data):
    X = Views({name: data[0][name] for name in ("rna", "protein")})
    assert KernelBank.fit({"rna": Linear(), "protein": ["linear", RBF()]}, X).names == [
        "rna", "protein: linear", "protein: rbf",
    ]  # fmt: skip
    bank = KernelBank.fit([Linear(), ("both", Linear(), ["rna", "protein"]), ("all", Linear(), None)], X)
    assert bank.names == ["rna", "protein", "both", "all"]
    np.testing.assert_allclose(bank.raw(2, X), bank.raw(0, X) + bank.raw(1, X))
    np.testing.assert_allclose(bank.raw(3, X), bank.raw(2, X))
    with pytest.raises(ValueError, match=r"must name views of X: 'rna', 'protein'. Got 'dna' instead"):
        KernelBank.fit({"dna": Linear()}, X)
    with pytest.raises(ValueError, match="needs the proposal of make_views"):
        KernelBank.fit("auto", X)
    mixed = Views({"rna": sparse.csr_array(np.eye(4)), "size": np.ones((4, 1))})
    assert KernelBank.fit([("all", Linear(), None)], mixed).raw(0, mixed)[0, 0] == 2.0
    with pytest.raises(ValueError, match="views side by side must be numbers"):
        KernelBank.fit([("all", Linear(), None)], Views(data[0]))


def test_views_pass_through_scikit_learn(data):
    named, y = data
    X = make_views(named, verbose=False)
    model = MKLClassifier("auto", C=2.0)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.6
    assert len(cross_val_predict(model, X, y, cv=3)) == N
    found = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    own = MKLClassifierCV("auto", Cs=[0.1, 1.0], cv=3, baselines=False).fit(X, y)
    np.testing.assert_allclose(own.cv_results_["mean_test_score"], found.cv_results_["mean_test_score"], atol=1e-12)
    raw = MKLClassifierCV("auto", Cs=[0.1, 1.0], cv=3, baselines=False).fit(named, y)
    np.testing.assert_allclose(raw.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"], atol=1e-12)
    assert own.missing_in_ == own.best_estimator_.missing_in_
    pipe = make_pipeline(FunctionTransformer(lambda table: Views(table, {"a": [0, 1], "b": [2]})), MKLClassifier())
    numbers = np.nan_to_num(named["protein"])
    assert len(pipe.fit(numbers, y).predict(numbers)) == N


def test_a_model_on_views_is_pickled_and_the_data_are_not_changed(data):
    named, y = data
    X = make_views(named, verbose=False)
    before = pickle.dumps(X)
    model = MKLClassifier("auto").fit(X[:40], y[:40])
    outputs = model.decision_function(X[40:])
    # another model on the same store changes nothing
    MKLClassifier("auto").fit(X[20:], y[20:])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X[40:]), outputs)
    np.testing.assert_array_equal(model.decision_function(pickle.loads(pickle.dumps(X))[40:]), outputs)
    assert pickle.dumps(X) == before


@pytest.mark.parametrize("gram", ["lazy", "memmap"])
def test_every_storage_has_the_same_kernels(data, gram):
    named, y = data
    dense = MKLClassifier("auto", gram="dense", tol=1e-6).fit(named, y)
    other = MKLClassifier("auto", gram=gram, tol=1e-6).fit(named, y)
    np.testing.assert_allclose(other.objective_, dense.objective_, rtol=1e-4)


def test_checkpoints_estimates_and_precomputed_kernels_take_a_dict(data, tmp_path, capsys):
    named, y = data
    model = MKLClassifier("auto", checkpoint=str(tmp_path), verbose=1).fit(named, y)
    plain = MKLClassifier("auto").fit(named, y)
    np.testing.assert_allclose(model.decision_function(named), plain.decision_function(named))
    assert MKLClassifier("auto").estimate(named, y, seconds=0.01).n_kernels == len(plain.kernel_names_)
    numbers = {"rna": np.nan_to_num(named["rna"])}
    assert MKLClassifier().estimate(numbers, y, seconds=0.01).n_kernels == 5
    kernels = {"a": numbers["rna"] @ numbers["rna"].T, "b": np.eye(N)}
    assert MKLClassifier("precomputed").fit(kernels, y).kernel_names_ == ["a", "b"]


def test_other_estimators_take_views(data, rng):
    named, y = data
    assert TwoStageClassifier("auto").fit(named, y).predict(named).shape == (N,)
    assert MKLRegressor("auto").fit(named, rng.normal(size=N)).predict(named).shape == (N,)
    assert MKLClassifier("auto").fit(np.nan_to_num(named["protein"]), y).feature_names_in_.tolist() == ["X"]


def test_a_view_of_precomputed_kernels(data, rng):
    named, y = data
    Z = rng.normal(size=(N, 4))
    X = make_views({"graph": stack_kernels({"a": Z @ Z.T, "b": np.eye(N)}), "rna": named["rna"]}, verbose=False)
    model = MKLClassifier("auto").fit(X[:40], y[:40])
    assert model.kernel_names_[:2] == ["graph: stacked(kernel=a)", "graph: stacked(kernel=b)"]
    assert len(model.predict(X[40:])) == 20 and cross_val_score(model, X, y, cv=3).shape == (3,)
    assert "graph 2 kernels" in repr(X)
    K = KernelBank.fit([("one", Stacked(1), "graph")], X)
    np.testing.assert_array_equal(K.raw(0, X[:5]), np.eye(5))
    with pytest.raises(ValueError, match="Stacked needs a KernelStack as its view"):
        KernelBank.fit([("one", Stacked(), "rna")], X)
    with pytest.raises(ValueError, match="The 'kernel' parameter of Stacked must be one of"):
        KernelBank.fit([("one", Stacked("c"), "graph")], X)
    test = Views({"graph": stack_kernels([(Z @ Z.T)[:3]] * 2), "rna": named["rna"][:3]})
    with pytest.raises(ValueError, match="give stack_kernels the parameter 'diag'"):
        KernelBank.fit([("one", Stacked(), "graph")], X).raw_diags(test)


# ---- missing values and views


def test_kernels_on_completed_views_are_positive_semidefinite(data):
    X = make_views(data[0], verbose=False)
    bank = KernelBank.fit("auto", X[:40])
    for k in range(bank.n_kernels):
        K = bank.raw(k, X)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(np.diag(K), bank.raw_diags(X)[k], atol=1e-12)
        values = spectrum_of(K)
        assert values[0] > -1e-10 * values[-1]
        np.testing.assert_allclose(bank.raw(k, X[:5], X[5:]), K[:5, 5:], atol=1e-12)
    for k, K in bank.raw_each(X[:5], X[5:]):
        np.testing.assert_allclose(K, bank.raw(k, X[:5], X[5:]), atol=1e-12)


def test_gaps_are_filled_by_the_training_samples_that_are_most_alike():
    # two clusters: the first view says which one, the second is missing for the last two samples
    first = np.repeat([[0.0], [10.0]], 8, axis=0) + 0.01 * np.arange(16)[:, None]
    second = np.repeat([[1.0, 5.0], [3.0, 7.0]], 8, axis=0)
    second[7], second[15, 1] = np.nan, np.nan
    X = Views({"first": first, "second": second})
    bank = KernelBank.fit([("both", Linear(), None)], X[:14])
    np.testing.assert_allclose(bank.preparation(X).take_columns((1,))[[7, 15]], [[1.0, 5.0], [3.0, 7.0]])
    # nothing in common: the means of the training samples
    other = Views({"first": [[np.nan]], "second": [[np.nan, np.nan]]})
    np.testing.assert_allclose(bank.preparation(other).take_columns((1,))[0], np.nanmean(second[:14], axis=0))


def test_sparse_views_texts_and_categories_are_completed(rng):
    words = ["the cat sat", "a dog ran fast", None, "cat and dog", "the dog sat down", "fast cat ran"]
    counts = sparse.csr_array(3.0 * np.eye(6, 5))
    table = pd.DataFrame({"stage": ["I", None, "I", "II", "II", "I"], "sex": ["f", None, "m", "m", "f", "f"]})
    X = make_views({"words": words, "counts": counts, "table": table}, verbose=False)
    assert [view.kind for view in X._store.views] == ["text", "counts", "categorical"]
    parts = KernelBank.fit("auto", X).preparation(X)
    assert parts.take_columns((0,))[[2]].sum() > 0 and not np.isnan(parts.take_columns((2,))).any()
    raw = Views({"table": table, "size": np.arange(6.0)[:, None]})
    assert KernelBank.fit([("t", Gower(), "table")], raw).raw(0, raw)[1].max() == 1.0
    lettered = Views(
        {"a": pd.Series([b"AC", b"GT"], dtype=object), "b": pd.Series([1.0, 2.0]), "c": np.array([["x"], ["y"]])}
    )
    assert lettered["a"].tolist() == ["AC", "GT"] and lettered["b"].shape == (2, 1) and lettered["c"].shape == (2,)
    dna = Views({"dna": ["ACGT", None, "ACGA", "TTTT"], "size": [[0.0], [3.1], [1.0], [3.0]]})
    bank = KernelBank.fit([("dna", "spectrum", "dna")], dna)
    np.testing.assert_array_equal(bank.raw(0, dna)[1], bank.raw(0, dna)[3])
    # the view of the kernel itself says which samples are alike
    alike = Views({"a": ["ACGT", "ACGT", "TTTT"], "b": [[1.0], [np.nan], [2.0]], "t": table[:3], "w": counts[:3]})
    assert KernelBank.fit([("b", Linear(), "b")], alike).raw(0, alike).shape == (3, 3)
    stack = Views({"k": stack_kernels([np.eye(4) + 1]), "b": [[1.0], [np.nan], [2.0], [4.0]]})
    assert KernelBank.fit([("b", Linear(), "b")], stack).raw(0, stack).shape == (4, 4)


def test_views_that_cannot_be_learned_from_are_named(rng):
    X = Views({"a": rng.normal(size=(4, 2)), "b": np.full((4, 2), np.nan)})
    with pytest.raises(ValueError, match=r"The view 'b' must have samples to learn from. Got none: all lack it"):
        MKLClassifier().fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"The view 'a' must hold finite numbers.*Got inf in row 1, column 0"):
        MKLClassifier().fit({"a": [[1.0], [np.inf]]}, [0, 1])
    ids = pd.DataFrame(np.eye(3), index=list("abc"))
    Z = Views({"k": stack_kernels([np.eye(3)]), "x": ids})
    Z._store.views[0].missing[1] = True
    with pytest.raises(ValueError, match="Kernels as a view must have all samples"):
        KernelBank.fit([("x", Linear(), "x")], Z)


# ---- encoders and proposals


def test_encoders_learn_on_training_samples(rng):
    table = pd.DataFrame({"n": [1.0, 3.0, np.nan], "c": ["a", "b", None], "flag": [True, False, True]})
    encoder = ColumnEncoder().fit(table)
    found = encoder.transform(table)
    np.testing.assert_allclose(found[:2, 0], [-1.0, 1.0])
    assert np.isnan(found[2, :3]).all() and not np.isnan(found[:, 3:]).any()
    unseen = encoder.transform(pd.DataFrame({"n": [2.0], "c": ["z"], "flag": [True]}))
    np.testing.assert_allclose(unseen[0, :3], 0.0)
    with pytest.raises(ValueError, match="must have 3 columns"):
        encoder.transform(table[["n"]])
    with pytest.raises(ValueError, match="must have numbers in column 0"):
        encoder.transform(table[["c", "c", "flag"]])
    with pytest.raises(ValueError, match=r"Got datetime64.* in column 'day'"):
        ColumnEncoder().fit(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}))
    np.testing.assert_allclose(ColumnEncoder(True, False).fit(np.eye(2)).transform(np.eye(2)), np.log(2) * np.eye(2))
    whole = pd.DataFrame({"i": pd.array([1, None, 3], dtype="Int64")})
    assert np.isnan(Views({"a": whole})["a"]).sum() == 1


def test_terms_are_weighted_by_how_rare_they_are():
    encoder = TermEncoder().fit(np.array(["red red blue", "red green"], dtype=object))
    found = encoder.transform(np.array(["red blue", "yellow", None], dtype=object)).toarray()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1.0, 0.0, 0.0])
    assert found[0, encoder.vocabulary_["blue"]] > found[0, encoder.vocabulary_["red"]]
    with pytest.raises(ValueError, match="must hold words of two letters"):
        TermEncoder().fit(np.array(["a", "b"], dtype=object))
    with pytest.raises(ValueError, match="must have 2 columns"):
        TermEncoder().fit(np.eye(2)).transform(np.eye(3))


def test_kernels_are_proposed_by_type(rng, capsys):
    table = pd.DataFrame({
        "age": rng.integers(20, 80, 20), "stage": rng.choice(["I", "II"], 20),
        "note": ["seen on a day with rain"] * 20, "dna": ["".join(rng.choice(list("ACGT"), 9)) for _ in range(20)],
    })  # fmt: skip
    views = make_views(table)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in printed] == [
        ["numbers", "numeric"], ["categories", "categorical"], ["note", "text"], ["dna", "sequence"],
    ]  # fmt: skip
    assert views.kernels[-1][0] == "dna" and len(views.kernels[-1][1]) == 2
    others = {
        "binary": rng.integers(0, 2, (20, 4)), "counts": 5 * rng.poisson(0.2, (20, 9)) + 5 * np.eye(20, 9),
        "numeric": sparse.csr_array(rng.normal(size=(20, 3))), "mixed": table[["age", "stage"]],
        "text": pd.Series(["one two three"] * 20), "sequence": ["ACGT", "AC"] * 10,
    }  # fmt: skip
    assert all(view.kind == view.name for view in make_views(others, verbose=False)._store.views)
    gaps = others["counts"].astype(float)
    gaps[0, 0], gaps[1] = np.nan, np.nan
    make_views({"gaps": gaps})
    assert "dense counts" in (shown := capsys.readouterr().out) and "1 samples lack it; 1 values are missing" in shown
    odd = {"words": ["\u4e2d\u6587", "abc-1"], "empty": pd.Series([None, None], dtype=object)}
    assert make_views({"words": odd["words"]}, verbose=False)._store.views[0].kind == "text"
    assert make_views(pd.DataFrame({"empty": odd["empty"], "x": [1, 2]}), verbose=False).names == [
        "numbers",
        "categories",
    ]


# ---- kernels by name, categories


def test_kernels_are_given_by_name(rng):
    X = rng.normal(size=(20, 2))
    assert KernelBank.fit(["linear", "rbf", ("p", "polynomial", [0])], X).names[:2] == [
        "linear",
        "rbf(0.25)",
    ]
    assert len(KernelBank.fit(per_column("rbf"), X).names) == 10
    assert MKLClassifier("linear").fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9
    with pytest.raises(ValueError, match=r"kernel may be given by its name: .*'chi_squared'.*Did you mean 'laplacian'"):
        KernelBank.fit("laplacean", X)


def test_gower_is_positive_semidefinite_with_gaps(rng):
    table = pd.DataFrame({"c": rng.choice(list("abc"), 40), "x": rng.normal(size=40), "flag": rng.random(40) < 0.5})
    table.loc[::3, "x"] = np.nan
    table.loc[1::4, "c"] = None
    kernel = Gower().fit(table[:30])
    K = kernel(table)
    assert spectrum_of(K)[0] > -1e-12 and K.max() <= 1.0
    np.testing.assert_allclose(np.diag(K), kernel.diag(table))
    np.testing.assert_allclose(np.diag(K), 1 - table.isna().mean(axis=1))
    model = MKLClassifier([("t", Gower(), None)]).fit(table, table["flag"])
    assert model.score(table, table["flag"]) > 0.9
    before = MKLClassifierCV([("t", Gower(), None)], Cs=[1.0], cv=2).fit(table, table["flag"])
    assert before.best_score_ > 0.9
    with pytest.raises(NotFittedError, match="This Gower learns"):
        Gower()(table)
    equal = Gower("all").fit([[1, 2], [1, 3]])
    np.testing.assert_array_equal(equal([[1, 2]], [[1, 3], [9, 9]]), [[0.5, 0.0]])
    np.testing.assert_array_equal(Gower([0]).fit(np.eye(2))(np.eye(2)), np.eye(2))
    np.testing.assert_array_equal(Gower().fit(sparse.csr_array(np.eye(2)))(np.eye(2)), np.eye(2))
    np.testing.assert_array_equal(Gower().fit(["a", "b"])(["a", "b"]), np.eye(2))


def test_wrong_input_of_gower_is_named():
    with pytest.raises(ValueError, match="The 'categorical' parameter of Gower must be"):
        Gower([5]).fit(np.eye(2))
    with pytest.raises(ValueError, match=r"Gower was fitted on 2 columns. Got 3"):
        Gower().fit(np.eye(2))(np.eye(3))
    with pytest.raises(ValueError, match=r"Gower was fitted on numbers in column 0. Got 'a'"):
        Gower().fit([[1.0]])(np.array([["a"]], object))
    with pytest.raises(ValueError, match="Gower got infinity in column 0, row 1"):
        Gower().fit([[1.0], [np.inf]])
    with pytest.raises(ValueError, match=r"Gower needs samples of shape \(n, d\)"):
        Gower().fit(np.ones((2, 2, 2)))
