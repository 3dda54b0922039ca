"""Web archives and their indexes: a stream of bytes in, captures and faults out.

The modules here know no paths, stores or clocks, `source` and `inputs` apart. `cdx` reads indexes,
`remote` opens files of buckets and servers, and `ingest` writes what is read to the intake.

To add a form of archive file, add its first bytes to `recognise`, and a module that yields the
events of `events`; call it in `webarchive`. `ingest.splits` must know whether ranges of a file can
be read.
"""

from builder.sources.source import Source

WEBARCHIVES = Source(
    __name__,
    "ARC, WARC, WACZ, CDX, CDXJ files",
    {"--collection SPEC...": "collection of all captures, with levels separated by colons"},
    {
        "--run RUN as plan": "with part and commit: the run",
        "--index N": "with part: the chunk, from 0",
        "--chunk MB": "chunk size (256)",
        "--engine": "where parts are read",
        "--scheduler ADDRESS": "of dask, spark, or lambda (ARN)",
    },
    {
        "chunk": {"default": 256},
        "engine": {"action": "store", "choices": ("local", "dask", "spark", "lambda")},
    },
    "A file fails if it cannot be read. It also fails if it should be an archive, by its name, its "
    "content or because you named it, and has faults but no captures.\n\n"
    "Many machines: `ingest plan SOURCE...` divides web archives into chunks and prints the RUN. "
    "`ingest part --run RUN --index N` reads chunk N, on any machine, in any order. `ingest commit "
    "--run RUN` makes one run of all parts. A source named plan is ./plan.",
    noun=("capture",),
    count=lambda run: sum(source.captures for source in run.sources),
    key="captures",
)
