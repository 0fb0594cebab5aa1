-- regex_work_spec.lua: regular expressions whose tries multiply are refused after some million tries, and those whose work is in proportion
-- to the text are not, however long it is.
local support = require "spec.support.init"
local flow = require "flow"

local replace = flow.strings.regex_replace

describe("the work of a regular expression", function()
  local function says(pattern, text, ok, message)
    assert.is_false(ok)
    assert.matches(("the regular expression %q takes too long on a text of %d bytes"):format(pattern, #text), message, 1, true)
  end

  it("ends early where tries multiply", function()
    for _, case in ipairs { { "(a|aa)*b", 60 }, { "a*a*a*a*b", 3000 } } do
      local text = ("a"):rep(case[2])
      says(case[1], text, pcall(replace, text, case[1], ""))
    end
    local mode, rounds, text = jit.status(), 0, ("a"):rep(40)
    jit.off()      -- compiled code calls no hooks
    debug.sethook(function()
      rounds = rounds + 1
      if rounds > 700 then error("more than 700 million instructions of Lua", 0) end
    end, "", 1000000)
    local ok, message = pcall(replace, text, "(a*)*b", "")
    debug.sethook()
    if mode then jit.on() end
    says("(a*)*b", text, ok, message)
  end)

  it("is counted for all matches in a text together", function()
    local text = (("a"):rep(18) .. "c"):rep(300)      -- each match is near the limit of one
    assert.matches("takes too long", support.message_of(function() replace(text, "(a*)*b|(a+)+c!", "") end))
  end)

  it("may be as long as the text", function()
    assert.equal(("hello you "):rep(50000), replace(("hello, you! "):rep(50000), "[[:punct:]]", ""))
    assert.equal((" qux "):rep(20000), replace(("foo1 qux bar22"):rep(20000), "(foo|bar|baz)\\d+", ""))
    assert.equal((" text "):rep(20000), replace(("<br/> text "):rep(20000), "<.*?>", ""))
    assert.equal("", replace(("a"):rep(2500), "(.*)a", ""))
  end)
end)
