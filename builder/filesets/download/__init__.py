"""Files of datasets: downloaded, checked, resumed."""
