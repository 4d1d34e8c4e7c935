"""Charts and tables of results: each is written once, as a plain Vega-Lite dictionary."""

import itertools
import json
import re
from dataclasses import dataclass

import numpy as np
import pytest

import deniable as dn
from deniable import views
from deniable.errors import InvalidArgument
from deniable.estimation import Estimate, Quantity
from deniable.views.charts import OF_WHOLE, SMALL_WORDS, WIDTH, printed

TITLE = "How often do you smoke?"


@pytest.fixture(scope="module")
def shares():
    m = dn.OUE(["daily", "now and then", "never"], epsilon=1.0)
    answers = np.random.default_rng(1).choice(m.domain.labels, 20_000, p=[0.1, 0.3, 0.6])
    return m.tally(m.privatize(answers, np.random.default_rng(2))).estimate()


@pytest.fixture(scope="module")
def mean():
    m = dn.DRR(dn.Number(0, 24), epsilon=1.0)
    hours = np.random.default_rng(1).normal(7.2, 1.4, 20_000)
    return m.tally(m.privatize(hours, np.random.default_rng(2))).estimate()


@pytest.fixture(scope="module")
def two():
    """Two quantities, of which one is a share."""
    errors = np.array([0.01, 0.02])
    share = Quantity(
        np.array([0.2, 0.5]), errors, np.array([[0.18, 0.22], [0.46, 0.54]]), share=True
    )
    rating = Quantity(
        np.array([3.0, 4.0]),
        10 * errors,
        np.array([[2.8, 3.2], [3.6, 4.4]]),
        limits=(1, 5),
        words="mean rating",
    )
    return Estimate(
        labels=("apples", "pears"),
        quantities={"frequency": share, "mean": rating},
        n=1_000,
        method="unbiased",
        confidence=0.95,
        source="toy",
        errors="normal",
    )


def labels_of(spec):
    """The labels along y, as Vega will evaluate them."""
    found = spec["encoding"]["y"]["axis"]["labelExpr"]
    listed = re.fullmatch(r"slice\((\[.*\])\[datum\.value\], 1\)", found)
    return [label[1:] for label in json.loads(listed[1])]


def test_a_chart_is_plain_data_with_the_question_as_its_title(shares):
    spec = views.chart(shares, title=TITLE)
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert spec["title"]["text"] == [TITLE]
    assert spec["usermeta"]["details"] == (
        "bayes, 95 % score intervals about respondents; OUE, k = 3, epsilon = 1"
    )
    assert spec["usermeta"]["details"] not in str(spec["title"])
    assert spec["title"]["subtitle"] == [
        "20,000 answers. Bars show estimates; lines show 95 % intervals."
    ]
    (x,) = {layer["encoding"]["x"]["axis"]["format"] for layer in spec["layer"]}
    assert x == "~%"
    assert views.chart(shares)["title"]["text"] == ["Estimated shares"]


def test_charts_have_the_numbers_as_people_read_them(shares, mean):
    columns = views.chart(shares)["usermeta"]["columns"]
    assert list(columns) == ["answer", "share", "from", "to"]
    assert columns["answer"] == ["daily", "now and then", "never"]
    assert all(re.fullmatch(r"\d+\.\d %", text) for text in columns["share"])
    spec = views.chart(mean, title="How long did you sleep?")
    (number,), (low,), (high,) = (spec["usermeta"]["columns"][name] for name in spec_numbers(spec))
    assert f"The mean is {number} (95 % interval: {low} to {high})." in spec["usermeta"]["caption"]
    assert number == f"{mean.mean:.2f}"


def spec_numbers(spec):
    return list(spec["usermeta"]["columns"])[1:]


def test_a_mean_is_shown_in_its_range(mean):
    spec = views.chart(mean)
    (domain,) = {tuple(layer["encoding"]["x"]["scale"]["domain"]) for layer in spec["layer"]}
    assert domain == (0, 24)
    assert spec["layer"][0]["encoding"]["x"]["title"] == "answers clipped to [0, 24]"
    assert spec["layer"][0]["mark"]["type"] == "point"


def test_a_mean_beyond_its_range_does_not_leave_the_plot():
    m = dn.DRR(dn.Number(0, 250_000), epsilon=0.5)
    e = m.tally(m.privatize(np.zeros(300), np.random.default_rng(3))).estimate()
    assert e.mean_interval[0] < 0
    spec = views.chart(e)
    (domain,) = {tuple(layer["encoding"]["x"]["scale"]["domain"]) for layer in spec["layer"]}
    assert domain == (min(e.mean_interval), 250_000)
    assert re.search(r"The mean is -?[\d,]+,000 ", spec["usermeta"]["caption"])


def test_the_truth_of_a_simulation_is_marked(shares, mean):
    with_truth = views.chart(shares, {"never": 0.6, "daily": 0.1, "now and then": 0.3})
    assert [row["truth"] for row in with_truth["data"]["values"]] == [0.1, 0.3, 0.6]
    caption = with_truth["usermeta"]["caption"]
    assert "Diamonds show the simulated truth. About 1 interval in 20 misses it" in caption
    assert with_truth["layer"][-1]["mark"]["shape"] == "diamond"
    one = views.chart(mean, [7.2])
    assert "A diamond shows the simulated truth." in one["usermeta"]["caption"]
    with pytest.raises(InvalidArgument, match="truth"):
        views.chart(shares, [5, 10, 85])


@pytest.mark.parametrize("k", [40, 60, 200])
def test_many_long_labels_have_a_row_each(k):
    labels = ["__proto__", "constructor", *(f"{'a long label ' * 9}{i}" for i in range(k - 2))]
    m = dn.GRR(labels, epsilon=4.0)
    e = m.tally(m.privatize(labels * 20, np.random.default_rng(1))).estimate("unbiased")
    spec = views.chart(e, title="Which one? " * 40)
    drawn = min(k, 60)
    assert spec["height"] >= 20 * drawn
    assert len(labels_of(spec)) == len(spec["data"]["values"]) == drawn
    assert set(labels_of(spec)) <= set(labels)
    assert spec["config"]["axisY"]["labelLimit"] < WIDTH
    assert len(spec["title"]["text"]) <= 3
    cut = "The 60 most frequent of 200 values are shown."
    assert (cut in spec["usermeta"]["caption"]) == (k > 60)


def test_labels_that_objects_have_already_are_drawn(tmp_path):
    labels = ["__proto__", "constructor", "toString", "<b>&\"'"]
    m = dn.GRR(labels, epsilon=4.0)
    e = m.tally(m.privatize(labels * 50, np.random.default_rng(1))).estimate()
    drawn = e.save(tmp_path / "chart.svg").read_text()
    for label in ("__proto__", "constructor", "toString", "&lt;b&gt;"):
        assert f">{label}" in drawn


def test_several_quantities_stand_below_one_another(two, tmp_path):
    spec = views.chart(two, title="Which fruit, and how good?")
    share, rating = spec["vconcat"]
    assert share["layer"][0]["encoding"]["x"]["field"] == "frequency"
    assert rating["layer"][0]["encoding"]["x"]["title"] == "mean rating"
    assert "Bars and points show estimates" in spec["usermeta"]["caption"]
    assert list(spec["usermeta"]["columns"]) == [
        "answer", "frequency share", "frequency from", "frequency to", "mean", "mean from",
        "mean to",
    ]  # fmt: skip
    assert ">mean rating<" in two.save(tmp_path / "two.svg").read_text()
    assert list(two.columns()) == [
        "value", "frequency", "frequency_standard_error", "frequency_low", "frequency_high",
        "mean", "mean_standard_error", "mean_low", "mean_high",
    ]  # fmt: skip


def test_pictures_have_the_technical_line_in_small(mean, tmp_path):
    spec = views.chart(mean, title=TITLE)
    picture = printed(spec)
    body, note = picture["vconcat"]
    assert note["mark"]["text"] == [spec["usermeta"]["details"]]
    assert body == {name: part for name, part in spec.items() if name not in OF_WHOLE}
    assert spec["config"]["style"]["details"]["fontSize"] < 11
    long = {**spec, "usermeta": {**spec["usermeta"], "details": "many words " * 40}}
    lines = printed(long)["vconcat"][1]["mark"]["text"]
    assert len(lines) > 1
    assert max(map(len, lines)) <= SMALL_WORDS
    plain = {**spec, "usermeta": {"caption": "", "details": ""}}
    assert printed(plain) == plain
    drawn = mean.save(tmp_path / "mean.svg", title=TITLE).read_text()
    assert 'font-size="9px"' in drawn
    assert f">{TITLE}<" in drawn


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "png", "svg"])
def test_charts_are_saved(mean, shares, tmp_path, ending):
    for name, e in {"mean": mean, "shares": shares}.items():
        path = tmp_path / "new" / f"{name}.{ending}"
        assert e.save(path, title=TITLE) == path
        assert path.stat().st_size > 2_000
    with pytest.raises(InvalidArgument, match=r"\.html, \.png, \.svg"):
        mean.save(tmp_path / "chart.pdf")


def test_notebooks_get_a_chart_of_altair(mean):
    assert mean.plot(title=TITLE).to_dict()["title"]["text"] == [TITLE]
    assert "<td>mean</td>" in mean._repr_html_()


def test_tables(mean, shares, two):
    columns = [str(column.header) for column in views.table(mean).columns]
    assert columns == ["statistic", "estimate", "s.e.", "95 % interval"]
    assert len(views.table(mean, [7.2]).columns) == 5
    assert len(views.table(shares).rows) == 3
    assert [str(column.header) for column in views.table(two).columns] == [
        "value", "frequency", "frequency, 95 %", "mean", "mean, 95 %",
    ]  # fmt: skip


@dataclass(frozen=True)
class Sum:
    """A result from elsewhere."""

    total: int


class Product(Sum):
    """One that looks like the class it comes from."""


def test_results_from_elsewhere_register_their_views():
    with pytest.raises(InvalidArgument, match="something that has a chart"):
        views.chart(Sum(3))
    views.chart.register(Sum)(lambda result, title="sum": {"title": title, "at": result.total})
    try:
        assert views.chart(Sum(3)) == {"title": "sum", "at": 3}
        assert views.chart(Product(4), title="x") == {"title": "x", "at": 4}
    finally:
        views.chart.unregister(Sum)
    with pytest.raises(InvalidArgument, match="something that has a table"):
        views.table(Sum(3))


@pytest.mark.slow
def test_a_distribution_has_a_density_and_a_cdf():
    m = dn.HH(dn.Number(0, 24, 0.5), 2.0)
    x = np.random.default_rng(1).normal(7, 1.2, 5_000)
    e = m.tally(m.privatize(x, np.random.default_rng(2))).estimate()
    density, cdf = e.chart(title="How long do you sleep?"), e.chart("cdf")
    assert e.views == ("density", "cdf")
    bars = density["layer"][0]["data"]["values"]
    assert len(bars) == 49
    assert sum(row["share"] for row in bars) == pytest.approx(1)
    line = cdf["layer"][0]["data"]["values"]
    assert [line[0]["share"], line[-1]["share"]] == [0, 1]
    assert all(a["share"] <= b["share"] for a, b in itertools.pairwise(line))
    assert all(row["from"] <= row["to"] for row in line)
    for spec in (density, cdf):
        assert "5,000 answers. " in spec["usermeta"]["caption"]
        assert "the median, 7" in spec["usermeta"]["caption"]
        assert f" The mean is {e.mean:.2f} (95 % " in spec["usermeta"]["caption"]
        assert "Answers beyond the range count at its ends: " in spec["usermeta"]["caption"]
        assert "95 % quantile" in spec["usermeta"]["columns"]["statistic"]
        views.wrapped(spec).to_dict()
    with pytest.raises(InvalidArgument, match="density, cdf"):
        e.chart("pie")
    mean = dn.DRR(dn.Number(0, 24), 2.0)
    only = mean.tally(mean.privatize(x, np.random.default_rng(2))).estimate()
    assert only.views == ()
    assert only.chart()["usermeta"]["columns"]["statistic"] == ["mean"]


def test_a_distribution_says_how_many_skipped():
    """Skips are reports, and no answers."""
    m = dn.HH(dn.Number(0, 24, 1, optional=True), 2.0)
    tally = m.tally(m.privatize([7.0, 8.0, None, 6.0] * 1_000, np.random.default_rng(2)))
    e = tally.estimate()
    for kind in e.views:
        caption = e.chart(kind)["usermeta"]["caption"]
        assert caption.startswith("4,000 reports. ")
        assert caption.endswith(f" {e.skipped_words}")
