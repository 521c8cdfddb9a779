"""scikit-learn's `SVC` tuned by grid over C and the width of one Gaussian kernel on all columns, five folds."""

TITLE = "SVC tuned by grid"
REQUIREMENTS: list[str] = []
VARIANTS = [""]
EFFORTS = [{"points": 2}, {"points": 4}]


def skip(problem, variant):
    return ""


def prepare(data, variant):
    return None


def fit(_, data, variant, points):
    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    scale = 1.0 / (data.X.shape[1] * data.X.var())
    grid = {"C": np.logspace(-1, 2, points), "gamma": scale * np.logspace(-1, 1, points)}
    return GridSearchCV(SVC(), grid, cv=5).fit(data.X, data.y)


def predict(model, _, data, variant):
    return model.predict(data.X_test)


def solution(model, data):
    return None
