-- faults_spec.lua: a worker that is killed while all of them train is named by the others, at once, and nothing is left: the short form of
-- scripts/faults-cluster. What a stopped worker leads to takes longer: worker_spec.lua has it with shorter limits.
local support = require "spec.support.init"

local plugins = os.getenv("FLOWLUA_LIB"):match("^(.*/)")

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local SANITIZED = os.getenv("FLOW_SANITIZED") and "engines have findings of their own under sanitizers"
local WITHOUT = {
  RING = not exists(plugins .. "libflow_gloo.so") and "this build has no libflow_gloo.so (libgloo-dev and g++)" or SANITIZED,
  MPI = not exists(plugins .. "libflow_mpi.so") and "this build has no libflow_mpi.so (libopenmpi-dev)"
    or os.execute("command -v mpirun >/dev/null") ~= 0 and "mpirun is not installed (openmpi-bin)" or SANITIZED,
}

describe("a worker that is killed", function()
  for _, engine in ipairs { "RING", "MPI" } do
    it("is named by all others, " .. engine, function()
      if WITHOUT[engine] then return pending(WITHOUT[engine]) end
      local text, code = support.run(("FLOWLUA_PROGRAM=%q timeout -k 5 120 %q --kills 1 --stops 0 --engine %s"):format(support.program,
        support.root .. "scripts/faults-cluster", engine))
      assert.equal(0, code, text)
      assert.equal(3, select(2, text:gsub("1 of 1 as it should be", "")), text)
    end)
  end
end)
