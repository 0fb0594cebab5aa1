-- faults_spec.lua: some cells of the matrix that scripts/faults-cluster runs: workers that are killed are named by the others, or come
-- back, and the results are those of a run without a fault, to the bit. The cells that freeze processes or cut networks take longer.
local support = require "spec.support.init"

local WITHOUT = { mpi = support.missing_engine("MPI", true) }

describe("faults-cluster", function()
  for _, case in ipairs {
    { "memory", "^memory/back/kill/save/", 6 }, { "memory", "^memory/back/terminate/step/.$", 3 },
    { "memory", "^memory/ends/kill/step/.$", 3 },
    { "memory", "^memory/ends/terminate/end/1", 1 }, { "memory", "^memory/ends/exit/save/2", 1 }, { "tcp", "^tcp/back/kill/start/0", 1 },
    { "tcp", "^tcp/ends/kill/save/1", 1 }, { "mpi", "^mpi/ends/kill/save/", 3 }, { "mpi", "^mpi/ends/exit/step/0", 1 },
    { "hosts", "^hosts/back/kill/step/.$", 3 }, { "elastic", "^elastic/ends/kill/step/", 3 }, { "elastic", "^elastic/back/kill/save/", 4 },
  } do
    local kind, pattern, count = unpack(case)
    it("finds nothing wrong in the cells " .. pattern, function()
      if WITHOUT[kind] then return pending(WITHOUT[kind]) end
      local text, code = support.run(("FLOWLUA_PROGRAM=%q timeout -k 5 280 %q --again --slack 30 --jobs 1 --folder %s --cells %q"):format(
        support.program, support.root .. "scripts/faults-cluster", support.folder(), pattern))
      assert.equal(0, code, text)
      assert.truthy(text:find(("faults-cluster: %d cells as they should be, 0 wrong"):format(count), 1, true), text)
    end)
  end
end)
