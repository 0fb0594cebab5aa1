--- The same results from every instruction set: programs with FLOW_ISA pinned compute all cases, and are compared.
local support = require "spec.support.init"
local flow = require "flow"
local backend = require "spec.support.backend"
local cases = require "spec.backend.cases"

--- Runs the cases in its own process; the results, or nil and what it said.
local function results(isa)
  local file = support.file(isa .. ".npy", "")
  local output, code = support.run(("FLOW_ISA=%s %s %s %s"):format(isa, os.getenv("FLOW_LUA") or "luajit",
    support.root .. "spec/support/backend_results.lua", file))
  if code ~= 0 then error(("%s: exit %d: %s"):format(isa, code, output)) end
  local values = output == isa and flow.load_npy(file) or nil
  os.remove(file)
  return values, output
end

--- Positions in the file where outputs or gradients of a case end, by the mark.
local function marks(values)
  local list, at = {}, 0
  for _, value in ipairs(values:eq(-12345):totable()) do
    at = at + 1
    if value == true or value == 1 then list[#list + 1] = at end
  end
  return list
end

describe("the results of all cases", function()
  local plain, ends

  setup(function()
    plain = results("plain")
    ends = marks(plain)
  end)

  it("are there in plain C", function()
    assert.equal(2 * #cases, #ends)
    assert.is_true(plain:is_finite():all():item())
  end)

  for _, isa in ipairs { "avx2", "avx512" } do
    it("are those of plain C with " .. isa, function()
      local values, found = results(isa)
      if not values then
        pending(("this machine has no %s: FLOW_ISA=%s gives %s"):format(isa, isa, found))
        return
      end
      local first = 1
      for i, last in ipairs(ends) do
        local range, case = { { first, last - 1 } }, cases[math.ceil(i / 2)]
        local what = backend.title(case) .. (i % 2 == 0 and ": gradients" or ": outputs")
        local tolerance = (i % 2 == 0 or case.op:find("_gradient$")) and 1e-4 or 1e-5
        if last > first then backend.near(plain[range], values[range], tolerance, what) end
        assert.equal(-12345, values[last]:item(), what)
        first = last + 1
      end
    end)
  end
end)
