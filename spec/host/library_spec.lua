-- library_spec.lua: the library as a file and as a guest in a plain luajit: what it links, and that it survives being let go.
local support = require "spec.support.init"
local library = os.getenv("FLOWLUA_LIB")
local sanitized = os.getenv("FLOW_SANITIZED")

-- Runs a script in a plain luajit with the library's path in arg[1] and the modules in reach.
local function luajit(script)
  local file = support.file("host.lua", script)
  return support.run(("LUA_PATH=%q luajit %q %q"):format(
    support.root .. "lua/?.lua;" .. support.root .. "lua/?/init.lua;;", file, library))
end

-- A sanitizer's runtime must come first in a process, so a plain luajit cannot load such a library.
local it_in_luajit = sanitized and pending or it

describe("the library file", function()
  it("stays mapped when a host lets go of it", function()
    local text, code = support.run("readelf -d " .. library)
    assert.equal(0, code)
    assert.truthy(text:find("FLAGS_1.-NODELETE"), text)
  end)

  it("has only thread-local variables that are there when a thread begins, in the room that running programs have", function()
    local text = support.run("readelf -lW " .. library)
    local size = tonumber(text:match "TLS%s+0x%x+ 0x%x+ 0x%x+ 0x%x+ 0x(%x+)", 16)
    assert.truthy(size and size <= 128, text)
    assert.truthy(support.run("readelf -dW " .. library):find "STATIC_TLS")
  end)

  it("needs only libc and libm", function()
    if sanitized then return pending("a sanitizer adds its own") end
    local allowed = { ["libc.so.6"] = true, ["libm.so.6"] = true, ["ld-linux-x86-64.so.2"] = true }
    local text, found = support.run("readelf -d " .. library), 0
    for name in text:gmatch("NEEDED.-%[(.-)%]") do
      assert.truthy(allowed[name], "unexpected library " .. name)
      found = found + 1
    end
    assert.truthy(found >= 2, text)
  end)

  it("exports nothing but flow_ functions", function()
    local text, code = support.run("nm -D --defined-only " .. library)
    assert.equal(0, code)
    local found = 0
    for name in text:gmatch("%x+ %a ([%w_]+)") do
      assert.truthy(name:find("^flow_"), "exported: " .. name)
      found = found + 1
    end
    assert.truthy(found > 50)
  end)
end)

describe("a host in C", function()
  local guest = library:gsub("lib/[^/]*$", "bin/guest")
  local inputs = { "keras/trained_adam.keras", "keras/expected.npz", "pictures/daisy/b.jpg", "pictures/Rose/interlaced.png",
                   "pictures/top.png", "pictures/Rose/moving.gif" }

  local function run(program)
    local words = { program, (support.file("made", ""):gsub("/[^/]*$", "")) }
    for _, name in ipairs(inputs) do words[#words + 1] = support.root .. "spec/golden/" .. name end
    local text, code = support.run(table.concat(words, " "))
    assert.equal(0, code, text)
    return text
  end

  it("may export functions of the names that parts of the library have", function()
    local alone = run(guest)
    assert.truthy(alone:find("^%x+\n$"), alone)
    assert.equal(alone, run(guest .. "_exporting"))
  end)
end)

describe("a plain luajit", function()
  it_in_luajit("computes, lets the library go and goes on", function()
    local text, code = luajit [[
      local ffi = require "ffi"
      ffi.cdef "int flow_set_threads(int); int flow_threads(void); int usleep(unsigned);"
      local lib = ffi.load(arg[1])
      lib.flow_set_threads(2)
      local flow = require "flow"
      assert(flow.ones({ 300, 300 }):matmul(flow.ones { 300, 300 }):sum():item() == 300 ^ 3)
      lib, flow = nil, nil
      for name in pairs(package.loaded) do if name:find("^flow") then package.loaded[name] = nil end end
      for _ = 1, 5 do collectgarbage() end
      ffi.C.usleep(20000)                     -- workers go to sleep in code that must still be there
      flow = require "flow"
      assert(flow.ones({ 300, 300 }):matmul(flow.ones { 300, 300 }):sum():item() == 300 ^ 3)
      print "alive"
    ]]
    assert.equal("alive\n", text)
    assert.equal(0, code)
  end)

  it_in_luajit("ends cleanly while workers spin", function()
    for _ = 1, 10 do
      local text, code = luajit [[
        local flow = require "flow"
        flow.config.set_threads(2)
        flow.ones({ 300, 300 }):matmul(flow.ones { 300, 300 })
      ]]
      assert.equal("", text)
      assert.equal(0, code)
    end
  end)

  it_in_luajit("has no new thread and no new global after require", function()
    local text = luajit [[
      local function threads()
        local pipe = io.popen("ls /proc/" .. io.open("/proc/self/stat"):read("*n") .. "/task | wc -l")
        return tonumber(pipe:read("*a"))
      end
      local before = {}
      for k in pairs(_G) do before[k] = true end
      local flow = require "flow"
      local x = flow.ones { 10, 10 } + 1
      assert(threads() == 1, "threads: " .. threads())
      for k in pairs(_G) do assert(before[k], "new global " .. tostring(k)) end
      print "clean"
    ]]
    assert.equal("clean\n", text)
  end)

  it_in_luajit("stops a tensor operation when it is interrupted", function()
    local text = luajit [[
      local flow = require "flow"
      local native = require "flow.ffi"
      native.C.flow_interrupt(native.context, 1)
      local ok, message = pcall(function() return flow.ones { 3 } + 1 end)
      native.C.flow_interrupt(native.context, 0)
      print(ok, (flow.ones({ 3 }) + 1):sum():item())
    ]]
    assert.equal("false\t6\n", text)
  end)
end)
