"""Known hosts of platforms whose software runs in many places, by platform name."""

from urllib.parse import urlsplit

from builder.filesets.metadata.json_document import host

_DATAVERSE = """
abacus.library.ubc.ca archive.data.jhu.edu borealisdata.ca darus.uni-stuttgart.de data.aussda.at
data.cifor.org data.cimmyt.org data.cipotato.org data.crossda.hr data.fz-juelich.de
data.goettingen-research-online.de data.gro.uni-goettingen.de data.inrae.fr data.mel.cgiar.org
data.qdr.syr.edu data.sciencespo.fr data.scielo.org datarepositorium.uminho.pt
datasets.iisg.amsterdam dataspace.ust.hk dataverse.ada.edu.au dataverse.asu.edu
dataverse.cirad.fr dataverse.csuc.cat dataverse.fgv.br dataverse.harvard.edu
dataverse.icrisat.org dataverse.iit.it dataverse.ird.fr dataverse.lib.nycu.edu.tw
dataverse.lib.umanitoba.ca dataverse.lib.unb.ca dataverse.lib.virginia.edu dataverse.nl
dataverse.no dataverse.openforestdata.pl dataverse.orc.gmu.edu dataverse.rsu.lv
dataverse.tdl.org dataverse.theacss.org dataverse.ucla.edu dataverse.uclouvain.be
dataverse.unc.edu dataverse.unimi.it dataverse.vtti.vt.edu datos.pucp.edu.pe datos.uchile.cl
dorel.univ-lorraine.fr dvn.fudan.edu.cn edatos.consorciomadrono.es edmond.mpg.de
edmond.mpdl.mpg.de entrepot.recherche.data.gouv.fr heidata.uni-heidelberg.de
indata.cedia.edu.ec keen.zih.tu-dresden.de lida.dataverse.lt opendata.pku.edu.cn
rdr.kuleuven.be redu.unicamp.br repod.icm.edu.pl researchdata.cuhk.edu.hk
researchdata.ntu.edu.sg sodha.be www.sodha.be
"""
_INVENIORDM = """
data.caltech.edu authors.library.caltech.edu fdat.uni-tuebingen.de prism.northwestern.edu
repository.cern repository.tugraz.at researchdata.tuwien.ac.at researchdata.tuwien.at
rodare.hzdr.de ultraviolet.library.nyu.edu works.hcommons.org www.fdr.uni-hamburg.de
"""
DATAVERSE = frozenset(_DATAVERSE.split())
INVENIORDM = frozenset(_INVENIORDM.split())
ZENODO = frozenset({"zenodo.org", "www.zenodo.org", "sandbox.zenodo.org"})


def base(url: str) -> str:
    """Return a URL's scheme and host, the start of API URLs; listed hosts always use https."""
    parts = urlsplit(url)
    if host(url) in DATAVERSE | INVENIORDM:
        return f"https://{host(url)}"
    return f"{parts.scheme}://{parts.netloc}"
