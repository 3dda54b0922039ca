"""Indexes of web archives: lines of CDX and CDXJ in, the captures that they list out."""
