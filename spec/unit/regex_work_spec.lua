-- regex_work_spec.lua: the work of a regular expression is in proportion to the text, however its parts repeat; only matches each of which
-- looks ahead to the end of a long text are refused.
local support = require "spec.support.init"
local flow = require "flow"

local replace = flow.strings.regex_replace

describe("the work of a regular expression", function()
  local function is_kept(text, pattern) assert.equal(text, replace(text, pattern, ""), pattern) end

  it("does not multiply with ways to match", function()
    is_kept(("a"):rep(200000), ".*x")
    is_kept(("a"):rep(50000), "(a|aa)*b")
    is_kept(("a"):rep(50000), "a*a*a*a*b")
    is_kept(("a"):rep(50000), "(a*)*b")
    is_kept(("ab"):rep(20000), "(?:a?b?){20}c")
    is_kept(("x"):rep(20000), "(x+x+)+y")
    assert.equal("-" .. ("c"):rep(300), replace(("a"):rep(30000) .. "b" .. ("c"):rep(300), "(a*)*b", "-"))
  end)

  it("finds groups of long texts", function()
    assert.equal("40000", tostring(#replace(("ab"):rep(20000) .. "x", "((?:ab)*)x", "\\1")))
  end)

  it("has bounds", function()
    assert.matches("with its repeats written out it has more than 100000 steps", support.message_of(function()
      replace("a", "((a{1000}){1000}){1000}", "")
    end))
  end)

  it("may be as long as the text", function()
    assert.equal(("hello you "):rep(50000), replace(("hello, you! "):rep(50000), "[[:punct:]]", ""))
    assert.equal((" qux "):rep(20000), replace(("foo1 qux bar22"):rep(20000), "(foo|bar|baz)\\d+", ""))
    assert.equal((" text "):rep(20000), replace(("<br/> text "):rep(20000), "<.*?>", ""))
    assert.equal("", replace(("a"):rep(2500), "(.*)a", ""))
  end)
end)
