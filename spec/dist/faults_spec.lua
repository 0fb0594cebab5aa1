-- faults_spec.lua: a worker that is killed while all of them train is named by the others, before silence would tell, and nothing is left:
-- the short form of scripts/faults-cluster, which also measures how soon. What a stopped worker leads to takes longer: worker_spec.lua has
-- it with shorter limits.
local support = require "spec.support.init"

local WITHOUT = { RING = support.missing_engine("RING", true), MPI = support.missing_engine("MPI", true) }

describe("a worker that is killed", function()
  for _, engine in ipairs { "RING", "MPI" } do
    it("is named by all others, " .. engine, function()
      if WITHOUT[engine] then return pending(WITHOUT[engine]) end
      local text, code = support.run(("FLOWLUA_PROGRAM=%q timeout -k 5 280 %q --kills 1 --stops 0 --notice 8 --engine %s"):format(
        support.program, support.root .. "scripts/faults-cluster", engine))
      assert.equal(0, code, text)
      assert.equal(3, select(2, text:gsub("1 of 1 as it should be", "")), text)
    end)
  end
end)
