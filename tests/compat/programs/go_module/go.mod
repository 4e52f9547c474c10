module example.com/compat

go 1.18
