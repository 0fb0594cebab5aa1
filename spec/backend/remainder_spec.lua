-- remainder_spec.lua: a % b of floats beside exact arithmetic: math.fmod of doubles that hold the floats, moved into the sign of b and
-- rounded once. Quotients from tiny to beyond 2^29, from where on the vectors leave a lane to libm; zeros, infinities, NaN, denormals.
local flow = require "flow"

local FIRST, LAST = (require "spec.support.case_numbers")(300)
local SPECIAL = { 0, -0.0, 1, -1, 0.5, 3, -7, 1e-40, -1e-40, 1e30, -1e30, 2 ^ 29, 2 ^ 29 + 64, 2 ^ 24 + 2, 3.4028234663852886e38, 1 / 0,
                  -1 / 0, 0 / 0 }

local function rounded(value) return flow.tensor(value, { dtype = "float32" }):item() end

local function expected(a, b)
  local r = math.fmod(a, b)
  if b == 0 or a ~= a or b ~= b or math.abs(a) == 1 / 0 then return 0 / 0 end
  if math.abs(b) == 1 / 0 then r = a end
  if r == 0 then return b < 0 and -0.0 or 0 end
  return (r < 0) ~= (b < 0) and rounded(r + b) or r
end

describe("the remainder of floats", function()
  it("is exact, for any number of elements", function()
    for number = FIRST, LAST do
      local draw = (require "spec.backend.random_ops.arguments").source(number).draw
      local function value()
        if draw(1, 8) == 1 then return rounded(SPECIAL[draw(1, #SPECIAL)]) end
        return rounded((draw(-2 ^ 24, 2 ^ 24)) * 2 ^ draw(-60, 30))
      end
      local a, b = {}, {}
      for i = 1, draw(1, 70) do
        a[i], b[i] = value(), value()
        if draw(1, 3) == 1 then b[i] = rounded(a[i] / draw(1, 40)) end      -- near whole quotients
      end
      local found = flow.mod(flow.tensor(a), flow.tensor(b)):totable()
      for i = 1, #a do
        local want = expected(a[i], b[i])
        local same = found[i] == want and 1 / found[i] == 1 / want or found[i] ~= found[i] and want ~= want
        assert.is_true(same, ("number %d, element %d: %.9g %% %.9g is %.9g, expected %.9g"):format(number, i, a[i], b[i], found[i], want))
      end
    end
  end)
end)
