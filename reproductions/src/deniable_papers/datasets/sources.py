"""Where the data of the papers comes from: files, formats, checksums, and what to download.

A checksum is given only where it is known: of UCI's files it is that of the bytes that UCI serves,
of a Parquet copy that of the copy. Data whose checksum differs are read all the same, and their
note says so.
"""

from __future__ import annotations

from dataclasses import dataclass

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income",
)  # fmt: skip
AUSTRALIAN = (*(f"A{number}" for number in range(1, 15)), "class")


@dataclass(frozen=True)
class File:
    """A file as downloaded: ``names`` of its columns (none: in a header), and what it is.

    ``separator`` None means any white space, and "parquet" a Parquet file.
    """

    file: str
    what: str
    separator: str | None = ","
    names: tuple[str, ...] = ()
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """A data set: the files that may hold it, in the order in which they are looked for."""

    title: str
    download: str
    files: tuple[File, ...]


SOURCES = {
    "adult": Source(
        "Adult (Becker and Kohavi, UCI 1996)",
        "adult.data from the page 'Adult' of the UCI Machine Learning Repository",
        (
            File("adult.data", "UCI Adult, training file", ",", ADULT,
                 "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
            File("adult_train.parquet", "UCI Adult, training file (Parquet copy)", "parquet", (),
                 "76284d965c8ecc43db0cc37d6403d4033720a407ee07739a0e9195bfb8b39f1e"),
        ),
    ),
    "adult-test": Source(
        "Adult, test file (Becker and Kohavi, UCI 1996)",
        "adult.test from the page 'Adult' of the UCI Machine Learning Repository",
        (
            File("adult.test", "UCI Adult, test file", ",", ADULT,
                 "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        ),
    ),
    "australian": Source(
        "Statlog Australian Credit Approval (Quinlan, UCI)",
        "australian.dat from the page 'Statlog (Australian Credit Approval)' of the UCI Machine"
        " Learning Repository",
        (
            File("australian.dat", "UCI Statlog Australian credit", None, AUSTRALIAN),
            File("australian.parquet", "UCI Statlog Australian credit (Parquet copy)", "parquet",
                 (), "c4e27d59058e0da111ce871032ba751f873f62e0f53a3715142735836c3e3809"),
        ),
    ),
    "census1990": Source(
        "US Census 1990 (Meek, Thiesson and Heckerman, UCI)",
        "USCensus1990.data.txt from the page 'US Census Data (1990)' of the UCI Machine Learning"
        " Repository",
        (
            File("USCensus1990.data.txt", "UCI US Census 1990, discretised"),
            File("census1990_raw_50k.parquet",
                 "UCI US Census 1990 RAW, a 50,000-row sample of 2,458,285: rare codes are missing",
                 "parquet", (),
                 "4ee88ee67c2733adb9786fcbd027c4813a9ff823f9996666b77e4a6bb90b2877"),
        ),
    ),
    "acs-income": Source(
        "American Community Survey, income of persons",
        "a person file psam_p*.csv of the PUMS of the US Census Bureau (what folktables downloads)",
        (
            File("psam_p*.csv", "ACS PUMS person records"),
            File("acs2013_2017_income_100k.parquet",
                 "ACS PUMS 2013-2017, 100,000 adults of 20 states: stands in for folktables 2018",
                 "parquet", (),
                 "edf7e53f65748c004ca261669939745c62cb5088c6d91a1f2c15661d49eac738"),
        ),
    ),
}  # fmt: skip
