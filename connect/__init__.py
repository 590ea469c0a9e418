"""The program that brings data in and out of topics; `README.md` says where to start."""

from pages.certificates import read_when_needed

read_when_needed()
