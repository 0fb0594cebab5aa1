--- Random chains of ops over views, sizes of 0 and all dtypes (spec/support/random_chains.lua): eager, traced, and in doubles by plain
--- loops. A traced chain has the bits of the eager one; both are as near to the doubles as their dtypes allow. FLOW_CASES=10000 tries this
--- many, FLOW_CASE=number one of them.
local flow = require "flow"
local backend = require "spec.support.backend"
local arguments = require "spec.backend.random_ops.arguments"
local random_chains = require "spec.support.random_chains"

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(300)

local function compare(what, expected, found)
  assert.equal(expected.dtype, found.dtype, what .. ": dtype")
  assert.same(expected.array.shape, { unpack(found.shape) }, what .. ": shape")
  local list = arguments.array_of(found)
  for i = 1, expected.array.n do
    local off = math.abs(list[i] - expected.array[i])
    if not (off <= expected.off * 1.01) then
      error(("%s: element %d of %s %s is %.17g, expected %.17g, may be off by %.3g"):format(what, i, expected.dtype,
        table.concat(found.shape, "x"), list[i], expected.array[i], expected.off), 0)
    end
  end
end

describe("a chain of ops", function()
  it("gives the same eagerly and traced, and what doubles give", function()
    local failures, steps = {}, 0
    for case = FIRST, LAST do
      local title = "chain " .. case
      local ok, message = pcall(function()
        local chain = random_chains.of(case)
        title = chain.title
        local eager = chain.run(unpack(chain.inputs))
        for i, found in ipairs(eager) do compare("result " .. i, chain.expected[i], found) end
        -- All results of a trace, or the last alone, so that what is between is fused where it can be.
        local traced, n = { flow.fn(function(...) return unpack(chain.run(...)) end)(unpack(chain.inputs)) }, #eager
        for i = 1, n do backend.identical(eager[i], traced[i], "traced, result " .. i) end
        backend.identical(eager[n], flow.fn(function(...) return chain.run(...)[n] end)(unpack(chain.inputs)), "traced, the last result")
        steps = steps + n
      end)
      if not ok then failures[#failures + 1] = ("%s: %s"):format(title, tostring(message)) end
      if case % 50 == 0 then collectgarbage() end
    end
    assert.equal(0, #failures, ("%d of %d: %s"):format(#failures, CASES, table.concat(failures, "\n", 1, math.min(#failures, 20))))
    assert.truthy(CASES < 20 or steps > 3 * CASES, steps .. " steps")
  end)
end)
