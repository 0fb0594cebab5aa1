-- python_format_spec.lua: numbers and texts against what Python's format() gave (python_format.py).
require "spec.support.init"
local python_format = require "flow.callbacks.python_format"
local cases = {}
for _, case in ipairs(require "spec.golden.python_format") do
  for i = 3, #case, 2 do cases[#cases + 1] = { case[1], case[2], case[i], case[i + 1] } end
end

describe("Python's format", function()
  it("is matched for whole numbers, floats and texts", function()
    assert.is_true(#cases > 900)
    local wrong = {}
    for _, case in ipairs(cases) do
      local kind, value, spec, expected = unpack(case)
      local values = { x = value }
      local integer = kind == "integer"
      local ok, found = pcall(python_format.format, "test", "<{x:" .. spec .. "}>", integer and values or {}, integer and {} or values)
      if not ok or found ~= "<" .. expected .. ">" then
        wrong[#wrong + 1] = ("%s %s %q: %s, expected %s"):format(kind, tostring(value), spec, tostring(found), expected)
      end
    end
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("gives the shortest digits that read back", function()
    for _, case in ipairs(cases) do
      if case[1] == "float" and case[3] == "" then assert.equal(case[4], python_format.repr(case[2])) end
    end
    math.randomseed(7)
    for _ = 1, 1000 do
      local value = (math.random() - 0.5) * 10 ^ math.random(-30, 30)
      assert.equal(value, tonumber(python_format.repr(value)))
    end
  end)

  it("fills templates, and names what is wrong with them", function()
    local function fill(template) return python_format.format("save", template, { epoch = 3 }, { val_loss = 0.4567, loss = 1 }) end
    assert.equal("m/03-0.46.keras", fill "m/{epoch:02d}-{val_loss:.2f}.keras")
    assert.equal("{3}", fill "{{{epoch}}}")
    local function fails(template)
      local ok, message = pcall(fill, template)
      assert.is_false(ok, template)
      return message
    end
    assert.truthy(fails "{val_acc:.2f}.keras":find("there is no val_acc to put in; there are epoch, loss, val_loss", 1, true))
    assert.truthy(fails "{epoch:.2d}":find("takes no precision", 1, true))
    assert.truthy(fails "{loss:d}":find('no format of type "d"', 1, true))
    assert.truthy(fails "{loss:q!}":find("not one of Python's", 1, true))
    assert.truthy(fails "{epoch":find("a { has no }", 1, true))
    assert.truthy(fails "epoch}":find("a } has no {", 1, true))
    assert.truthy(fails "{}":find("is not a name", 1, true))
    assert.truthy(fails "{epoch[0]}":find("is not a name", 1, true))
    assert.truthy(fails "{epoch:999d}":find("at most 99", 1, true))
    local ok, message = pcall(python_format.format, "save", "{x:05s}", {}, { x = 1 / 0 })
    assert.is_true(not ok and message:find('a float has no format of type "s"', 1, true) ~= nil)
    for _, template in ipairs { "{x:0=5}", "{x:x=05}" } do
      ok, message = pcall(python_format.format, "save", template, {}, { x = "abc" })
      assert.is_true(not ok and message:find("a text takes neither sign", 1, true) ~= nil)
    end
  end)
end)
