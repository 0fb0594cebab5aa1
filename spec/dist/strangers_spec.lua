-- strangers_spec.lua: while workers meet and train, strangers connect to all ports that they listen on (strangers.c). The training is the
-- same, to the last bit. FLOW_CASES is the number of other beginnings of what the strangers do.
local support = require "spec.support.init"
local runs = require "spec.support.replica_runs"

local MISSING = { MPI = support.missing_engine("MPI", true) }
local strangers = support.program:match("^(.*/)") .. "strangers"

describe("strangers at the ports of workers", function()
  for _, case in ipairs { { "RING", 3, "FLOW_SHARED_MEMORY=0" }, { "RING", 2, "" }, { "MPI", 2, "FLOW_SHARED_MEMORY=0" } } do
    local engine, count, environment = unpack(case)
    it(("leave the bits of a training alone: %d workers, %s %s"):format(count, engine, environment), function()
      if MISSING[engine] then return pending(MISSING[engine]) end
      local undisturbed = runs.train(runs.workers(count, engine, "", environment))
      for seed = 1, tonumber(os.getenv("FLOW_CASES") or 1) do
        local run = runs.train(runs.workers(count, engine, "", ("%s %q %d flowlua"):format(environment, strangers, seed)))
        runs.check(run, runs.one "", count)
        assert.same(undisturbed.weights, run.weights, run.text)
        local connections, ports = run.text:match("strangers: (%d+) connections to (%d+) ports")
        assert.truthy(tonumber(connections) > 20 and tonumber(ports) >= count, run.text)
      end
    end)
  end
end)
