# Packs the functions of template.yaml; included by the Makefile of each architecture, which `sam
# build` runs with the folder to fill in ARTIFACTS_DIR. Python 3.13 is that of the functions, for the
# bytecode has to be its own: PYTHON313=... names it where `python3.13` is not on the PATH.
PYTHON313 := $(or $(PYTHON313),python3.13)
PACKAGE := $(dir $(realpath $(lastword $(MAKEFILE_LIST))))package.py

FUNCTIONS := build-OaiFunction build-ContentFunction build-PublishFunction build-IngestFunction \
	build-FilesetFunction

.PHONY: $(FUNCTIONS)
$(FUNCTIONS): build-%:
	@$(PYTHON313) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' || \
		{ echo "Python 3.13 is needed to pack the functions: PYTHON313=... names it" >&2; exit 1; }
	$(PYTHON313) $(PACKAGE) $* $(ARCHITECTURE) "$(ARTIFACTS_DIR)"
