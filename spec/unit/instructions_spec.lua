-- How many instructions a training step takes: unlike times they are the same on a loaded machine. Counted by valgrind, which
-- lets the AVX2 kernels run, within the plan's run of one thread. Whoever makes a step cheaper or dearer changes the number here.
local support = require "spec.support.init"

-- Millions of instructions of one step, as gcc 12 compiles it.
local expected = { mnist = { batch = 64, millions = 187.2 }, flowers = { batch = 4, millions = 155.3 } }
local tolerance = 0.03

describe("a training step", function()
  for name, net in pairs(expected) do
    it(("of %s takes as many instructions as it did"):format(name), function()
      local reason = support.cannot_count_instructions()
      if reason then return pending(reason) end
      local tool = "valgrind --tool=callgrind --collect-atstart=no --toggle-collect=flow_instance_run_rows --callgrind-out-file=/dev/null"
      local script = support.root .. "spec/support/training_steps.lua"
      local text = support.run(("FLOW_ISA=avx2 %s %s %s %s %d 1"):format(tool, support.program, script, name, net.batch))
      local found = tonumber((text:match("Collected : (%d+)"))) / 1e6
      local change = found / net.millions - 1
      if not (math.abs(change) <= tolerance) then
        error(("%.1f million instructions, expected %.1f within %g %%: %+.1f %%"):format(found, net.millions, 100 * tolerance,
          100 * change))
      end
    end)
  end
end)
