-- Elements that are moved: by a few places within long lines, where a copy is made by vectors rather than by the C library, and by
-- positions of every dtype of whole numbers.
local flow = require "flow"

local function numbers(n, dtype) return (flow.arange(n) % 251):to(dtype) end

describe("long lines", function()
  it("are rolled by a few elements", function()
    for _, dtype in ipairs { "float32", "float64", "float16", "uint8", "int64" } do
      for _, n in ipairs { 1, 2, 511, 512, 513, 2047, 4100, 20011 } do
        local x = numbers(n, dtype)
        local list = x:totable()
        for _, shift in ipairs { 1, 3, -5, 15, 63, n - 1 } do
          local found = flow.roll(x, shift):totable()
          for i = 1, n do
            if found[i] ~= list[(i - 1 - shift) % n + 1] then
              error(("%s: element %d of %d rolled by %d is %s"):format(dtype, i, n, shift, tostring(found[i])))
            end
          end
        end
      end
    end
  end)

  it("are joined, cut and taken as rows", function()
    local x = numbers(9000, "float32"):reshape { 3, 3000 }
    local list = x:totable()
    local joined = flow.concat({ x[{ {}, { 1, 3 } }], x, x[{ {}, { 5, -1 } }] }, 2):totable()
    local rows = flow.take(x, flow.tensor({ 3, 1, 3 }, { dtype = "int32" }), 1):totable()
    for i = 1, 3 do
      for k = 1, 3000 do
        assert.equal(list[i][k], joined[i][k + 3])
        assert.equal(list[({ 3, 1, 3 })[i]][k], rows[i][k])
        if k >= 5 then assert.equal(list[i][k], joined[i][3003 + k - 4]) end
      end
    end
  end)
end)

describe("positions", function()
  it("of each dtype take the same elements along an axis", function()
    local x = numbers(60, "float32"):reshape { 3, 20 }
    for _, dtype in ipairs { "int32", "int64", "int8", "uint8" } do
      local positions = flow.tensor({ { 20, 1, 7 }, { 1, 1, 2 }, { 19, 20, 3 } }, { dtype = dtype })
      assert.same({ { 19, 0, 6 }, { 20, 20, 21 }, { 58, 59, 42 } }, flow.take_along_axis(x, positions, 2):totable())
      local from_zero = positions - 1
      assert.same({ { 19, 0, 6 }, { 20, 20, 21 }, { 58, 59, 42 } },
        flow.raw_op("take_along", { x, from_zero }, { axis = 2 }):totable())
      assert.error_matches(function() flow.raw_op("take_along", { x, positions }, { axis = 2 }) end, "index 20 of row 1 is outside 0..19")
      assert.error_matches(function() flow.raw_op("take_along", { x, from_zero - 1 }, { axis = 2 }) end,
        dtype == "uint8" and "index 255 of row 1" or "index %-1 of row 1")
    end
  end)
end)

describe("sums of segments of single elements", function()
  it("are those of plain loops", function()
    for _, dtype in ipairs { "float32", "float64", "int32", "int64" } do
      for _, n in ipairs { 0, 1, 7, 1000 } do
        local x = numbers(n, dtype)
        local segments = (flow.arange(n) * 7 % 13):to("int32")
        local found, sums = flow.segment_sum(x, segments, 12):totable(), {}
        for i = 0, n - 1 do sums[i * 7 % 13] = (sums[i * 7 % 13] or 0) + i % 251 end
        for segment = 0, 11 do assert.equal(sums[segment] or 0, tonumber(found[segment + 1])) end
      end
    end
  end)
end)
