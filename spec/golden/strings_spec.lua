-- strings_spec.lua: flow.strings gives what TensorFlow's tf.strings gives (strings.py); rows of different lengths are filled up with "".
require "spec.support.init"
local flow = require "flow"
local golden = require "spec.golden.strings"

local function plain(value)
  if type(value) == "string" then return value end
  return #value.shape > 0 and value:totable() or value:item()
end

describe("flow.strings", function()
  it("splits, joins, cuts and converts as tf.strings does", function()
    for i, case in ipairs(golden.calls) do
      assert.same(case[3], plain(flow.strings[case[1]](unpack(case[2]))), i .. " " .. case[1])
    end
  end)

  it("finds what RE2 finds", function()
    for _, case in ipairs(golden.regular_expressions) do
      local pattern, text, rewrite, everywhere, replaced, matches = unpack(case)
      local title = ("%q in %q"):format(pattern, text)
      assert.equal(replaced, flow.strings.regex_replace(text, pattern, rewrite, everywhere), title)
      assert.equal(matches, flow.strings.regex_full_match(text, pattern):item(), title)
    end
  end)
end)
