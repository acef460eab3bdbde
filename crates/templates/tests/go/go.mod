module releases

go 1.24
