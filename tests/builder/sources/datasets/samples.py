"""Answers of platforms, made up: of the shape that each gives, and about nothing that there is."""

from typing import Any

from builder.sources.datasets.item import Person

FIGSHARE = "https://api.figshare.com/v2/articles/4711"
ARCHIVEORG = "https://archive.org/metadata/honey-1903"
DRYAD = "https://datadryad.org/api/v2/datasets/doi%3A10.5061%2Fdryad.h0n3y"
DRYAD_FILES = "https://datadryad.org/api/v2/versions/231/files?per_page=100"
OSF = "https://api.osf.io/v2/nodes/hny12/"
MENDELEY = "https://data.mendeley.com/public-api/datasets/h0n3ybees1"
PANGAEA = "https://doi.pangaea.de/10.1594/PANGAEA.4711"
CKAN = "https://demo.ckan.org/api/3/action/package_show?id=honey-prices"

JANA = Person(
    name="Včela, Jana",
    given="Jana",
    family="Včela",
    orcid="0000-0002-1825-0097",
    affiliations=("Apiary",),
)
MD5 = "0123456789abcdef0123456789abcdef"
SHA1 = MD5 + "01234567"
SHA256 = MD5 * 2


def figshare_file(id_: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "name": name,
        "size": 100,
        "is_link_only": False,
        "download_url": f"https://ndownloader.figshare.com/files/{id_}",
        "supplied_md5": MD5,
        "computed_md5": MD5,
        "mimetype": "text/csv",
        **more,
    }


def figshare(**more: Any) -> dict[str, Any]:
    """An article of two files, 200 bytes in all."""
    return {
        "id": 4711,
        "title": "Prices of <em>honey</em>",
        "doi": "10.6084/m9.figshare.4711.v2",
        "version": 2,
        "status": "public",
        "is_public": True,
        "is_confidential": False,
        "is_embargoed": False,
        "is_metadata_record": False,
        "download_disabled": False,
        "size": 200,
        "files": [figshare_file(1, "a.csv"), figshare_file(2, "b.csv")],
        "authors": [
            {"full_name": "Jana Medová", "orcid_id": "0000-0002-1825-0097"},
            {"full_name": "Jan Včelař", "first_name": "Jan", "last_name": "Včelař", "orcid_id": ""},
        ],
        "description": "<p>What honey cost.</p><p>In Brno.</p>",
        "defined_type_name": "dataset",
        "published_date": "2021-05-04T08:00:00Z",
        "tags": ["honey"],
        "categories": [{"title": "Economics"}],
        "license": {"name": "CC BY 4.0", "url": "https://creativecommons.org/licenses/by/4.0/"},
        "citation": "Medová, Jana (2021): Prices of <em>honey</em>. Beekeepers of Brno. Dataset. "
        "https://doi.org/10.6084/m9.figshare.4711.v2",
        "references": ["https://doi.org/10.1234/paper", "https://example.org/bees"],
        "related_materials": [
            {"identifier": "10.1234/book", "relation": "IsPartOf"},
            {"identifier": "10.1234/other", "relation": "Likes"},
        ],
        "resource_doi": "10.1234/journal.1",
        "url_public_html": "https://brno.figshare.com/articles/dataset/Prices_of_honey/4711",
        **more,
    }


def archiveorg(**more: Any) -> dict[str, Any]:
    """An item of two files that were put into it, and others that were made."""
    item = "honey-1903"
    files: list[dict[str, Any]] = [
        {
            "name": "honey/1903.csv",
            "source": "original",
            "size": "120",
            "md5": MD5,
            "sha1": SHA1,
            "crc32": "0123abcd",
            "format": "Comma-Separated Values",
        },
        {
            "name": "scan 1.tif",
            "source": "original",
            "size": "4096",
            "md5": MD5,
            "sha1": SHA1,
            "format": "A Format Of 2031",
        },
        {
            "name": "scan 1.jpg",
            "source": "derivative",
            "original": "scan 1.tif",
            "size": "77",
            "format": "JPEG",
        },
        {"name": "__ia_thumb.jpg", "source": "original", "size": "5", "format": "Item Tile"},
        {"name": f"{item}_meta.xml", "source": "original", "size": "9", "format": "Metadata"},
        {"name": f"{item}_files.xml", "source": "original", "format": "Metadata", "md5": MD5},
        {"name": f"{item}_archive.torrent", "source": "metadata", "size": "9"},
        {"name": "history/files/1903.csv.~1~", "source": "original", "old_version": "true"},
    ]
    return {
        "created": 1742510050,
        "files": files,
        "files_count": len(files),
        "metadata": {
            "identifier": item,
            "mediatype": "data",
            "title": "Honey in 1903",
            "creator": ["Medová, Jana", "Včelař, Jan, 1870-1940"],
            "contributor": "Library of Brno",
            "collection": "bees",
            "subject": "honey; bees",
            "date": "1903",
            "publicdate": "2008-09-10 18:05:14",
            "language": "cze",
            "description": "Prices of <b>honey</b>.",
            "licenseurl": "https://creativecommons.org/publicdomain/zero/1.0/",
            "external-identifier": ["urn:oclc:record:1", "doi:10.1234/HONEY.1903"],
        },
        **more,
    }


def dryad(**more: Any) -> dict[str, Any]:
    return {
        "_links": {"stash:version": {"href": "/api/v2/versions/231"}},
        "identifier": "doi:10.5061/dryad.h0n3y",
        "title": "Data from: honey",
        "authors": [
            {
                "firstName": "Jana",
                "lastName": "Medová",
                "affiliation": "Brno University",
                "orcid": "0000-0002-1825-0097",
                "email": "jana@example.org",
            },
        ],
        "abstract": "<p>Honey and &quot;bees&quot;.</p>",
        "keywords": ["honey", "bees"],
        "relatedWorks": [
            {
                "relationship": "primary_article",
                "identifierType": "DOI",
                "identifier": "https://doi.org/10.1234/paper",
            },
            {"relationship": "film", "identifier": "https://example.org/film"},
        ],
        "versionNumber": 3,
        "curationStatus": "Published",
        "publicationDate": "2020-01-02",
        "visibility": "public",
        "sharingLink": "https://datadryad.org/dataset/doi:10.5061/dryad.h0n3y",
        "license": "https://spdx.org/licenses/CC0-1.0.html",
        **more,
    }


def dryad_file(number: int, **more: Any) -> dict[str, Any]:
    return {
        "_links": {"stash:download": {"href": f"/api/v2/files/{number}/download"}},
        "path": f"hive{number}.csv",
        "size": 10 + number,
        "mimeType": "text/csv",
        "status": "copied",
        "digest": SHA256.upper(),
        "digestType": "sha-256",
        **more,
    }


def dryad_page(files: list[dict[str, Any]], total: int, following: str | None = None) -> Any:
    links = {"next": {"href": following}} if following else {}
    return {
        "_links": links,
        "count": len(files),
        "total": total,
        "_embedded": {"stash:files": files},
    }


def osf(**more: Any) -> dict[str, Any]:
    return {
        "data": {
            "id": "hny12",
            "type": "nodes",
            "attributes": {
                "title": "Honey & bees",
                "description": "What bees do.",
                "category": "data",
                "public": True,
                "tags": ["bees"],
                "date_created": "2019-08-10T16:40:46.702872",
                **more,
            },
            "embeds": {
                "contributors": {
                    "data": [
                        _osf_contributor(
                            True,
                            full_name="Jana Medová",
                            given_name="Jana",
                            family_name="Medová",
                            social={"orcid": "0000-0002-1825-0097"},
                        ),
                        _osf_contributor(False, full_name="Admin"),
                        _osf_of(bibliographic=True, unregistered_contributor="Jan Včelař"),
                    ]
                },
                "license": {
                    "data": _osf_of(
                        name="CC0 1.0 Universal",
                        url="https://creativecommons.org/publicdomain/zero/1.0/",
                    )
                },
                "identifiers": {
                    "data": [
                        _osf_of(category="ark", value="c7605/osf.io/hny12"),
                        _osf_of(category="doi", value="10.17605/OSF.IO/HNY12"),
                    ]
                },
            },
        }
    }


def _osf_of(**attributes: Any) -> dict[str, Any]:
    return {"attributes": attributes}


def _osf_contributor(bibliographic: bool, **user: Any) -> dict[str, Any]:
    return _osf_of(bibliographic=bibliographic) | {"embeds": {"users": {"data": _osf_of(**user)}}}


def osf_entry(name: str, place: str, **more: Any) -> dict[str, Any]:
    """A file of 7 bytes, or where `place` ends with a slash a folder."""
    folder = place.endswith("/")
    url = f"https://api.osf.io/v2/nodes/hny12/files/osfstorage/{name}/"
    return {
        "id": name,
        "attributes": {
            "name": name,
            "kind": "folder" if folder else "file",
            "size": None if folder else 7,
            "provider": "osfstorage",
            "materialized_path": place,
            "current_version": 1,
            "extra": {
                "hashes": {"md5": None if folder else MD5, "sha256": None if folder else SHA256}
            },
            **more,
        },
        "relationships": {"files": {"links": {"related": {"href": url}}}} if folder else {},
        "links": {} if folder else {"download": f"https://osf.io/download/{name}/"},
    }


def osf_page(entries: list[Any], total: int | None, following: str | None = None) -> Any:
    return {"data": entries, "links": {"next": following, "meta": {"total": total}}}


def mendeley(**more: Any) -> dict[str, Any]:
    return {
        "id": "h0n3ybees1",
        "version": 2,
        "name": "Honey",
        "description": "Prices of honey.",
        "doi": {"id": "10.17632/h0n3ybees1.2"},
        "publish_date": "2022-03-01T10:00:00Z",
        "contributors": [
            {
                "first_name": "Jana",
                "last_name": "Medová",
                "institution": {"name": "Brno University"},
            }
        ],
        "categories": [{"label": "Economics"}],
        "articles": [{"doi": "10.1234/paper"}],
        "related_links": [{"href": "https://example.org/bees"}, {"href": "nowhere"}],
        "data_licence": {
            "short_name": "CC BY 4.0",
            "url": "http://creativecommons.org/licenses/by/4.0",
        },
        "files": [{"id": "f-1"}, {"id": "f-2"}],
        **more,
    }


def mendeley_file(id_: str, name: str) -> dict[str, Any]:
    root = "https://data.mendeley.com/public-files/datasets/h0n3ybees1/files"
    return {
        "id": id_,
        "filename": name,
        "size": 12,
        "content_details": {
            "size": 12,
            "sha256_hash": SHA256,
            "content_type": "text/csv",
            "download_url": f"{root}/{id_}/file_downloaded",
        },
    }


def pangaea(**more: Any) -> dict[str, Any]:
    return {
        "@id": "https://doi.org/10.1594/PANGAEA.4711",
        "@type": "Dataset",
        "identifier": "https://doi.org/10.1594/PANGAEA.4711",
        "name": "Honey of the Arctic",
        "creator": [
            {
                "@id": "https://orcid.org/0000-0002-1825-0097",
                "@type": "Person",
                "name": "Jana Medová",
                "familyName": "Medová",
                "givenName": "Jana",
            },
            {"@type": "Organization", "name": "Bee Institute"},
        ],
        "publisher": {"@type": "Organization", "name": "PANGAEA"},
        "datePublished": "2019-06-21",
        "abstract": "Whole text.",
        "description": "Whole […]",
        "keywords": "honey; bees",
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "conditionsOfAccess": "unrestricted",
        "isAccessibleForFree": True,
        "inLanguage": "en",
        "size": {"value": 300, "unitText": "data points"},
        "variableMeasured": [{"@type": "PropertyValue", "name": "Temperature, hive"}],
        "citation": {"@id": "https://doi.org/10.1234/paper", "@type": "CreativeWork"},
        "distribution": [
            {
                "encodingFormat": "text/tab-separated-values",
                "contentUrl": "https://doi.pangaea.de/10.1594/PANGAEA.4711?format=textfile",
            },
            {
                "encodingFormat": "text/html",
                "contentUrl": "https://doi.pangaea.de/10.1594/PANGAEA.4711?format=html",
            },
        ],
        **more,
    }


def ckan_resource(id_: str, **more: Any) -> dict[str, Any]:
    """A file that CKAN keeps."""
    return {
        "id": id_,
        "name": "Prices",
        "format": "CSV",
        "hash": "",
        "mimetype": "text/csv",
        "size": 143,
        "state": "active",
        "url": f"https://demo.ckan.org/dataset/d/resource/{id_}/download/prices.csv",
        "url_type": "upload",
        **more,
    }


def ckan(**more: Any) -> dict[str, Any]:
    """The answer about a dataset of one file and one page."""
    return {
        "success": True,
        "result": {
            "id": "00000000-0000-4000-8000-000000004711",
            "name": "honey-prices",
            "title": "Prices of honey",
            "notes": "What honey cost.",
            "author": "Medová, Jana",
            "organization": {"title": "City of Brno"},
            "license_title": "CC BY 4.0",
            "license_url": "https://creativecommons.org/licenses/by/4.0/",
            "metadata_created": "2018-11-19T11:59:15.234777",
            "private": False,
            "state": "active",
            "type": "dataset",
            "version": "",
            "tags": [{"display_name": "honey", "name": "honey"}],
            "extras": [{"key": "issued", "value": "2018-11-01"}],
            "num_resources": 2,
            "resources": [
                ckan_resource("r-1", hash=MD5),
                ckan_resource("r-2", url_type=None, format="HTML", url="https://example.org/bees"),
            ],
            **more,
        },
    }
