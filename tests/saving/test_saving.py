"""Saved models: the same predictions and attributes after `save` and `load`, small files, damaged ones refused."""

import io
import json
import pickle
import warnings
import zipfile
from collections import UserList

import numpy as np
import pytest
from drill.fits import ESTIMATORS, draw_samples, fit, make
from drill.model_files import MUTATIONS, bundle, repack, unpack
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import multikernel
from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, TwoStageClassifier, TwoStageRegressor, kernels
from multikernel.kernels import RBF, Linear
from multikernel.losses import Huber
from multikernel.saving.container import read_container
from multikernel.saving.encoder import CannotSave, encode

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform", "score_samples")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = np.where(X[:, 0] + np.sin(2 * X[:, 2]) > 0, "yes", "no")
LETTERS = ["".join(RNG.choice(list("ACGTN"), 12)) for _ in range(40)]


def same(one, two, path=""):
    """Compare values, their types included, all the way down."""
    if isinstance(one, np.ndarray):
        assert type(one) is type(two) and one.dtype == two.dtype and one.shape == two.shape, path
        assert np.array_equal(one, two, equal_nan=one.dtype.kind == "f"), path
    elif isinstance(one, dict):
        assert list(one) == list(two), path
        for key in one:
            same(one[key], two[key], f"{path}[{key}]")
    elif isinstance(one, list | tuple):
        assert type(one) is type(two) and len(one) == len(two), path
        for i, (a, b) in enumerate(zip(one, two, strict=True)):
            same(a, b, f"{path}[{i}]")
    elif isinstance(one, int | float | str | np.generic | None):
        assert type(one) is type(two) and (one == two or one != one), path
    else:
        assert type(one) is type(two), path


def round_trip(model, samples, tmp_path, **options):
    """Save and load; compare every prediction and, in float64, every attribute."""
    model.save(tmp_path / "model.mk", **options) if hasattr(model, "save") else multikernel.save(
        model, tmp_path / "model.mk", **options
    )
    again = multikernel.load(tmp_path / "model.mk")
    assert type(again) is type(model)
    for method in METHODS:
        if hasattr(model, method):
            one, two = getattr(model, method)(samples), getattr(again, method)(samples)
            words = np.asarray(one).dtype.kind == "U"
            assert np.array_equal(one, two) if not options or words else np.allclose(one, two, atol=1e-4), method
    if not options:
        assert set(vars(again)) >= set(vars(model)) - {"_known"}
        for name, value in vars(model).items():
            if name not in ("scorer_", "callback", "_known"):
                same(value, vars(again)[name], name)
    return again


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("params", [{}, {"normalize": ["center", "cosine"], "C": 10.0}, {"psd": "clip"}])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_the_same_after_a_round_trip(name, params, tmp_path):
    if name == "MKLOneClass" and "normalize" in params:
        params = {"normalize": "cosine"}
    model = make(name, random_state=0, **params)
    samples, targets = draw_samples(model, np.random.default_rng(1), 40, classes=3)
    again = round_trip(fit(model, samples, targets), samples, tmp_path)
    with pytest.raises(ValueError, match=r"features|columns"):
        again.predict(samples[:, :2])
    # a loaded model is an estimator like any other
    fit(again, samples, targets)
    same(np.asarray(again.predict(samples)), np.asarray(model.predict(samples)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_pickles_predict_the_same(name):
    model = make(name)
    samples, targets = draw_samples(model, np.random.default_rng(1), 40, classes=3)
    again = pickle.loads(pickle.dumps(fit(model, samples, targets)))
    assert np.array_equal(again.predict(samples), model.predict(samples))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_skops_files_predict_the_same(name):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = make(name)
    samples, targets = draw_samples(model, np.random.default_rng(1), 40, classes=3)
    data = skops.dumps(fit(model, samples, targets))
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    assert np.array_equal(again.predict(samples), model.predict(samples))


SPECS = {
    "sequences": ([kernels.WeightedDegree(3), kernels.Spectrum(2), kernels.GappedKmer()], LETTERS),
    "blocks": ([kernels.PositionBlocks(kernels.DegreeBlocks(kernels.WeightedDegreeShift(2, 1)), 2)], np.array(LETTERS)),
    "alignments": ([kernels.LocalAlignment(), kernels.AminoAcidComposition(RBF()), kernels.Mismatch(3)], LETTERS),
    "encoded": ([kernels.WeightedDegree(3)], kernels.sequences.encode(LETTERS, "dna")),
    "algebra": ([RBF() * Linear() + 1.0, kernels.Polynomial(2) ** 2, 0.5 * kernels.Cosine()], X),
    "families": ([kernels.per_column(RBF()), kernels.per_group(kernels.Laplacian(), {"a": [0, 1], "b": [2]})], X),
    "mapped": ([kernels.Nystroem(RBF(), 10), kernels.RandomFourier(n_features=20)], X),
    "one column": ([("a", RBF(), [1]), ("b", kernels.Matern(), 0)], X),
    "non-negative": ([kernels.ChiSquared(), kernels.HistogramIntersection(), kernels.Tanimoto()], np.abs(X)),
    "sparse": ([("a", Linear(), [1]), ("b", RBF(), [0, 1])], sparse.csr_array(np.where(X > 0, X, 0))),
    "sparse matrix": ([Linear(), RBF()], sparse.csr_matrix(np.where(X > 0, X, 0))),
    "float32": ([RBF()], X.astype(np.float32)),
    "far away": ([RBF()], X * 1e200),
}


@pytest.mark.parametrize("gram", ["dense", "auto"])
@pytest.mark.parametrize("name", SPECS)
def test_every_kind_of_kernel_and_sample(name, gram, tmp_path):
    spec, samples = SPECS[name]
    model = MKLClassifier(spec, gram=gram, psd="clip", C=10.0).fit(samples, Y)
    round_trip(model, samples, tmp_path)


@pytest.mark.parametrize("spec", [
    [kernels.WeightedDegree(3), kernels.Spectrum(2), kernels.HashedDegree()],
    [kernels.WeightedDegree(3), kernels.WeightedDegree(2)],
])  # fmt: skip
def test_models_on_explicit_features_of_sequences(spec, tmp_path):
    model = MKLClassifier(spec, gram="features").fit(LETTERS, Y)
    assert model.gram_.kind == "features"
    round_trip(model, LETTERS, tmp_path)


def test_features_of_kernels_that_are_not_in_use_are_left_out(tmp_path):
    noise = RNG.normal(size=(40, 60))
    spec = [("noise", kernels.Nystroem(RBF(), 30), list(range(4, 64))), ("useful", Linear(), [0])]
    model = MKLRegressor(spec, gram="features").fit(np.hstack([X, noise]), X[:, 0])
    # as a solver leaves it that drops kernels altogether
    model.model_.expansion.model.vectors.pop(0)
    round_trip(model, np.hstack([X, noise]), tmp_path)
    assert (tmp_path / "model.mk").stat().st_size < 8000


def test_tables_precomputed_kernels_output_kernels_and_losses(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"dna": LETTERS, "age": X[:, 0], "unused": LETTERS, "size": X[:, 1]})
    spec = [("dna", kernels.Spectrum(2), "dna"), ("numbers", RBF(), ["age", "size"])]
    again = round_trip(MKLClassifier(spec, norm=2).fit(frame, Y), frame, tmp_path)
    assert again.feature_names_in_.tolist() == list(frame)
    round_trip(MKLClassifier([("dna", kernels.Spectrum(2), ["dna"])]).fit(frame[["dna"]], Y), frame[["dna"]], tmp_path)
    every = [("all", kernels.Spectrum(2), make_column_selector("dna")), ("age", RBF(), ["age"])]
    round_trip(MKLClassifier(every, norm=2).fit(frame, Y), frame, tmp_path)
    stack = multikernel.stack_kernels([X @ X.T, np.exp(X @ X.T / 10)], names=["a", "b"])
    round_trip(MKLClassifier("precomputed").fit(stack, Y), stack, tmp_path)
    codes = np.arange(40) % 3
    tuned = MKLClassifier([RBF(), Linear()], output_kernels=[np.eye(3), np.ones((3, 3)) + np.eye(3)])
    round_trip(tuned.fit(X, codes), X, tmp_path)
    round_trip(MKLRegressor(loss=Huber(0.5)).fit(X, X[:, 0]), X, tmp_path)
    round_trip(MKLRegressor(loss="squared").fit(X, X[:, :2]), X, tmp_path)
    for labels in (np.array([3, 7], np.int8), np.array([True, False]), np.array(["a", "b"], dtype=object)):
        round_trip(MKLClassifier().fit(X, labels[(Y == "yes").astype(int)]), X, tmp_path)


def test_models_of_several_views(tmp_path):
    pd = pytest.importorskip("pandas")
    people = [f"p{i}" for i in range(40)]
    mixed = pd.DataFrame({"stage": np.where(X[:, 2] > 0, "I", "II"), "age": X[:, 3]}, index=people)
    numbers = pd.DataFrame(X, index=people)
    data = {
        "numbers": numbers,
        "mixed": mixed.drop(people[:3]),
        "text": LETTERS,
        "sparse": sparse.csr_array(X > 0) * 1.0,
    }
    views = multikernel.make_views(data, verbose=False)
    again = round_trip(MKLClassifier("auto", norm=2).fit(views, Y), views, tmp_path)
    # new samples that lack a view are completed from the training samples of the file
    few = {**data, "numbers": numbers[5:], "mixed": mixed}
    assert np.array_equal(again.predict(few), MKLClassifier("auto", norm=2).fit(views, Y).predict(few))
    assert again.missing_in_ == {"mixed": {"samples": 3, "values": 0}}
    round_trip(again.fit(views, Y), views, tmp_path)
    plain = multikernel.Views({"numbers": numbers, "mixed": mixed})
    spec = {"numbers": "linear", "mixed": kernels.Gower()}
    round_trip(MKLClassifier(spec).fit(plain, Y), plain, tmp_path, dtype="float32")
    round_trip(MKLClassifierCV([("one", RBF(), "numbers")], Cs=[0.1, 1.0], cv=3).fit(plain, Y), plain, tmp_path)


def test_two_stages_and_searches(tmp_path):
    round_trip(TwoStageRegressor(estimator=KernelRidge(kernel="precomputed")).fit(X, X[:, 0]), X, tmp_path)
    search = MKLClassifierCV(Cs=[0.1, 1.0], cv=KFold(3), scoring="balanced_accuracy").fit(X, Y)
    again = round_trip(search, X, tmp_path)
    assert again.scorer_(again, X, Y) == search.scorer_(search, X, Y) and repr(again.cv) == repr(search.cv)
    assert again.best_estimator_.predict(X).tolist() == search.predict(X).tolist()
    assert again.best_estimator_.model_ is again.model_
    search.best_estimator_.save(tmp_path / "best.mk")
    assert np.array_equal(multikernel.load(tmp_path / "best.mk").predict(X), search.predict(X))
    own = MKLClassifierCV(Cs=[0.1, 1.0], cv=3, scoring=lambda model, X, y: 1.0, callback=print).fit(X[:30], Y[:30])
    with pytest.warns(UserWarning, match=r"parameters \['scoring'\] of MKLClassifierCV are not saved"):
        own.save(tmp_path / "own.mk")
    loaded = multikernel.load(tmp_path / "own.mk")
    assert loaded.scoring is None and loaded.callback is None and not hasattr(loaded, "scorer_")


def test_streams_go_on_after_loading(tmp_path):
    model = multikernel.UFOMKLClassifier([Linear()], random_state=0).partial_fit(X[:20], Y[:20], classes=["no", "yes"])
    again = round_trip(model, X, tmp_path)
    for each in (model, again):
        each.partial_fit(X[20:], Y[20:])
    assert np.array_equal(again.decision_function(X), model.decision_function(X)) and again.t_ == model.t_


def test_pipelines(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": np.where(X[:, 2] > 0, "x", "z")})
    steps = ColumnTransformer([("n", StandardScaler(), ["a", "b"]), ("w", OneHotEncoder(), ["word"])])
    round_trip(make_pipeline(steps, MKLClassifier([("n", RBF(), [0, 1]), Linear()])).fit(frame, Y), frame, tmp_path)


def test_lists_of_scikit_learn_are_lists_and_others_are_refused():
    class Columns(UserList):
        """As ColumnTransformer of scikit-learn 1.6 has them."""

    columns = Columns([1, "a"])
    with pytest.raises(CannotSave, match=r"cannot hold an object of type .*Columns"):
        encode(columns, False)
    Columns.__module__ = "sklearn.compose"
    assert encode(columns, False)[0]["root"] == [1, "a"]


def test_float32_halves_the_file_and_keeps_numbers_out_of_its_range(tmp_path):
    wide = np.hstack([X, RNG.normal(size=(40, 200))])
    model = MKLClassifier([RBF()]).fit(wide, Y)
    round_trip(model, wide, tmp_path)
    whole = (tmp_path / "model.mk").stat().st_size
    again = round_trip(model, wide, tmp_path, dtype="float32")
    assert (tmp_path / "model.mk").stat().st_size < 0.6 * whole
    assert again.model_.expansion.samples.dtype == np.float64 and again.objective_ == model.objective_
    for unit in (1e-60, 1e60):
        far = MKLClassifier([RBF()]).fit(X * unit, Y)
        far.save(tmp_path / "far.mk", dtype=np.float32)
        assert np.allclose(
            multikernel.load(tmp_path / "far.mk").decision_function(X * unit), far.decision_function(X * unit)
        )


def test_the_bars_of_size(tmp_path):
    data = load_breast_cancer()
    model = MKLClassifier().fit(StandardScaler().fit_transform(data.data), data.target)
    assert len(model.kernel_names_) == 5
    model.save(tmp_path / "five.mk")
    assert (tmp_path / "five.mk").stat().st_size < 200_000


def test_three_views_of_breast_tcga_take_less_than_300_kilobytes(tmp_path):
    try:
        data = multikernel.datasets.load("breast_tcga")
    except (ValueError, OSError) as error:
        pytest.skip(f"the data set breast_tcga is not here: {error}")
    names, rows = data["view_names"].tolist(), data["train"]
    views = [StandardScaler().fit_transform(view[rows]) for view in data["data"]]
    ends = np.cumsum([0, *(view.shape[1] for view in views)]).tolist()
    spec = [(name, RBF(), slice(a, b)) for name, a, b in zip(names, ends, ends[1:], strict=False)]
    model = MKLClassifier(spec).fit(np.hstack(views), data["y"][rows])
    assert np.count_nonzero(model.weights_) == 3
    model.save(tmp_path / "views.mk", dtype="float32")
    assert (tmp_path / "views.mk").stat().st_size < 300_000


# ---- what cannot be saved or loaded


class OwnKernel(Linear):
    pass


@pytest.mark.parametrize(("kernel", "match"), [
    (lambda A, B: A @ B.T, "'<lambda>' is a function of yours: save the model with pickle or skops"),
    (kernels.FunctionKernel(np.inner, psd=True), "'inner' is a function of yours"),
    (RBF() + kernels.FunctionKernel(np.inner, psd=True), "'inner' is a function of yours"),
    (OwnKernel(), "'own_kernel', a kernel of yours"),
])  # fmt: skip
def test_a_kernel_of_the_users_is_refused_in_a_sentence(kernel, match, tmp_path):
    model = MKLClassifier([kernel, Linear()], psd="clip").fit(X, Y)
    with pytest.raises(ValueError, match=match) as caught:
        model.save(tmp_path / "model.mk")
    assert str(caught.value).count(". ") <= 1 and not list(tmp_path.iterdir())


def test_what_save_refuses(tmp_path):
    model = MKLClassifier().fit(X, Y)
    with pytest.raises(NotFittedError, match="This MKLClassifier is not fitted yet: call fit before save"):
        MKLClassifier().save(tmp_path / "model.mk")
    for dtype in ("float16", 3, None, "half a byte"):
        with pytest.raises(ValueError, match="'dtype' parameter of save must be 'float64' or 'float32'"):
            model.save(tmp_path / "model.mk", dtype=dtype)
    for path, match in [
        (3, "must be the name of a file"), ("", "must be the name of a file"), (b"model", "must be the name of a file"),
        ("a\0b", "null character"), (tmp_path, "Got the folder"), (tmp_path / "no" / "model.mk", "existing folder"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            model.save(path)
    for other in (MKLClassifier, 3, StandardScaler()):
        with pytest.raises(ValueError, match="'model' parameter of save must be a fitted estimator"):
            multikernel.save(other, tmp_path / "model.mk")
    with pytest.raises(ValueError, match="cannot hold an object of type sklearn"):
        multikernel.save(LogisticRegression().fit(X, Y), tmp_path / "model.mk")
    (tmp_path / "locked").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(ValueError, match="could not be written: No space left on device"):
            model.save(tmp_path / "locked" / "model.mk")
    assert not list((tmp_path / "locked").iterdir())


def test_foreign_files_are_refused_in_one_sentence(tmp_path):
    path = tmp_path / "model.mk"
    with pytest.raises(ValueError, match="does not exist"):
        multikernel.load(path)
    with pytest.raises(ValueError, match="does not exist"):
        multikernel.load(tmp_path)
    buffer = io.BytesIO()
    np.savez(buffer, a=np.eye(2))
    for data, match in [
        (b"", "not a zip archive"), (pickle.dumps(MKLClassifier().fit(X, Y)), "not a zip archive"),
        (buffer.getvalue(), "model.json and SHA256SUMS are not in it"), (b"PK\3\4", "damaged"),
    ]:  # fmt: skip
        path.write_bytes(data)
        with pytest.raises(ValueError, match=match):
            multikernel.load(path)


@pytest.mark.parametrize(("change", "match"), [
    ({"format": "multikernel model 2"}, "its format is 'multikernel model 2'"),
    ({"format": None}, "its format is None"),
    ({"root": 3}, "it holds no estimator"),
    ({"root": {"object": 999}}, "IndexError"),
    ({"root": {"call": ["os.system", "true"]}}, "KeyError"),
    ({"root": {"a": 1, "b": 2}}, "too many values"),
    ({"objects": [{"class": "os.system", "state": {}}], "root": {"object": 0}}, "names the class 'os.system'"),
    ({"objects": [{"class": "models.Term", "state": {}}], "root": {"object": 0}}, "attributes of 'models.Term'"),
    ({"objects": [{"class": "kernels.RBF", "state": {}}], "root": {"object": 0}}, "it holds no estimator"),
])  # fmt: skip
def test_a_file_with_right_checksums_and_wrong_content_is_refused(change, match, tmp_path):
    members = unpack(bundle()["classifier"])
    members["model.json"] = json.dumps({**json.loads(members["model.json"]), **change}).encode()
    (tmp_path / "model.mk").write_bytes(repack(members, sums=True))
    with pytest.raises(ValueError, match=match):
        multikernel.load(tmp_path / "model.mk")


def test_members_are_checked(tmp_path):
    path, members = tmp_path / "model.mk", unpack(bundle()["classifier"])
    more = {**members, "extra.txt": b"more"}
    for changed, match in [
        (repack(more, sums=False), "its members are not those that SHA256SUMS lists"),
        (repack(more, sums=True), "damaged"),
        (repack({**members, "arrays/0.npy": members["arrays/0.npy"] + b"\0"}, sums=True), "followed by something else"),
        (repack({**members, "arrays/0.npy": b"cos\nsystem\n(S'true'\ntR."}, sums=True), "damaged"),
        (repack({**members, "model.json": b"["}, sums=True), "damaged"),
    ]:
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=match):
            multikernel.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in [*members.items(), ("model.json", members["model.json"])]:
                archive.writestr(name, data)
    with pytest.raises(ValueError, match="a member occurs twice"):
        multikernel.load(path)


def test_objects_of_another_scikit_learn_are_announced(tmp_path):
    path = tmp_path / "model.mk"
    TwoStageClassifier().fit(X, Y).save(path)
    members = unpack(path.read_bytes())
    document = json.loads(members["model.json"])
    members["model.json"] = json.dumps({**document, "sklearn": "0.1"}).encode()
    path.write_bytes(repack(members, sums=True))
    with pytest.warns(InconsistentVersionWarning, match="0.1"):
        multikernel.load(path)


def test_the_file_is_what_its_page_says(tmp_path):
    one, two = tmp_path / "one.mk", tmp_path / "two.mk"
    model = MKLClassifier().fit(X, Y)
    for path in (one, two):
        model.save(path)
    assert one.read_bytes() == two.read_bytes()
    model.save(one)
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["one.mk", "two.mk"]
    document, arrays = read_container(one)
    assert document["format"] == "multikernel model 1" and document["multikernel"] == multikernel.__version__
    with zipfile.ZipFile(one) as archive:
        names = archive.namelist()
    assert names == ["model.json", *(f"arrays/{k}.npy" for k in range(len(arrays))), "SHA256SUMS"]
    assert all(array.dtype.kind != "O" for array in arrays)


def test_a_file_of_the_first_format_is_read(request):
    """Written by version 0.1.0; what it predicts is in the file beside it."""
    folder = request.path.parent
    model = multikernel.load(folder / "format_1.mk")
    known = json.loads((folder / "format_1.json").read_text())
    assert model.decision_function(known["X"]) == pytest.approx(known["outputs"], rel=1e-12)
    assert (
        model.classes_.tolist() == ["no", "yes"] and model.duality_gap_ < 1e-3 and model.kernel_names_ == known["names"]
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(MUTATIONS))
def test_changed_files_are_refused_or_the_same(name, tmp_path):
    """A thousand of them, as many as there are kinds of changes allow each."""
    rng = np.random.default_rng(7)
    path = tmp_path / "model.mk"
    refused = 0
    for number in range(1000 // len(MUTATIONS) + 1):
        kind = list(bundle())[number % len(bundle())]
        original = bundle()[kind]
        path.write_bytes(MUTATIONS[name](original, rng))
        try:
            again = multikernel.load(path)
        except ValueError as error:
            assert str(error).endswith(".") and "\n" not in str(error) and len(str(error)) < 400
            refused += 1
            continue
        multikernel.save(again, tmp_path / "again.mk")
        assert (tmp_path / "again.mk").read_bytes() == original
    assert refused
