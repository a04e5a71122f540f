-- Lmod modulefile. Copy it to MODULEPATH/gpumemtopo/VERSION.lua; the programs are expected in
-- /opt/gpumemtopo/VERSION unless GPUMEMTOPO_ROOT names another folder.
local version = myModuleVersion()
local root = os.getenv("GPUMEMTOPO_ROOT") or pathJoin("/opt/gpumemtopo", version)

help([[gpumemtopo measures the memory hierarchy of every NVIDIA GPU of a cluster.

    gpumemtopo-survey --help     measures, and writes an inventory
    gpumemtopo-report --help     reads inventories
    gpumemtopo-predict --help    predicts the cache hits of kernels

It needs no CUDA. Under a launcher it uses Open MPI or MPICH, if its library is found.]])

whatis("Name: gpumemtopo")
whatis("Version: " .. version)
whatis("Category: performance, monitoring")
whatis("Description: measures the memory hierarchy of every NVIDIA GPU of a cluster")

-- The MPI of your launcher must be found by the dynamic linker. If it is a module, load it, under the name that it has
-- here:
-- depends_on("openmpi")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
