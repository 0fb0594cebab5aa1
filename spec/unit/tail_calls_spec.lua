-- tail_calls_spec.lua: errors of `return flow.f(...)` carry the line of the return, though LuaJIT keeps no frame of it.
require "spec.support.init"
local flow = require "flow"

-- The line, counted from where the chunk begins, that the error of a chunk names.
local function line_of(text)
  local ok, message = pcall(assert(loadstring("local flow = ...\n" .. text, "=chunk")), flow)
  assert.is_false(ok)
  return tonumber(message:match("^chunk:(%d+): ") or error("no line of the chunk: " .. message))
end

describe("the line of an error", function()
  it("is that of the tail call, by whatever variable its function was called", function()
    assert.equal(3, line_of "local function make(n)\n  return flow.layers.Dense(n)\nend\nlocal layer = make(-1)\nreturn layer")
    assert.equal(3, line_of "function Made_by_spec(n)\n  return flow.zeros(n)\nend\nlocal x = Made_by_spec('x')\nreturn x")
    assert.equal(3, line_of [[
      local function f(t) return
        t:matmul(t) end
      local function g() local x = f(flow.ones { 2, 3 }) return x end
      local y = g()
      return y]])
    rawset(_G, "Made_by_spec", nil)
  end)

  it("is that of the call where the function has other tail calls, and of every call that is not one", function()
    assert.equal(6, line_of [[
      local function f(x)
        if x then return flow.zeros(x) end
        return flow.ones(x)
      end
      local y = f("x")
      return y]])
    assert.equal(2, line_of "local y = flow.zeros('x')\nreturn y")
    assert.equal(3, line_of "local zeros = flow.zeros\nlocal y = zeros('x')\nreturn y")
    assert.equal(3, line_of "local function f(n)\n  local y = flow.zeros(n)\n  return y\nend\nlocal y = f('x')\nreturn y")
  end)

  it("is that of the call where nothing is known of it", function()
    assert.equal(3, line_of "local t = { f = function(n) return flow.zeros(n) end }\nlocal y = t.f('x')\nreturn y")
  end)
end)
