module waldio-client-go-waldio

go 1.21

require github.com/joj/waldio/packages/go v0.0.0

require github.com/mattn/go-sqlite3 v1.14.52 // indirect

// The module of packages/go with its library, as run.sh makes it beside this one.
replace github.com/joj/waldio/packages/go => ../go-module
