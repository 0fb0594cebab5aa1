-- install_spec.lua: what `cmake --install` writes: a C program finds it by pkg-config and by CMake, flowlua runs from where it was put,
-- plugins are found, and uninstalling leaves nothing. DESTDIR moves the tree away from the prefix that it was installed for.
local support = require "spec.support.init"

local build = os.getenv("FLOWLUA_LIB"):match("^(.*)/lib/[^/]*$")

local PROGRAM = [[
#include <stdio.h>
#include "flow.h"
int main(void) { return flow_version()[0] == '0' && flow_abi_version() == FLOW_ABI_VERSION ? puts(flow_version()) < 0 : 1; }
]]
local LISTS = [[
cmake_minimum_required(VERSION 3.22)
project(guest C)
find_package(flowlua 0.1 REQUIRED)
add_executable(guest guest.c)
target_link_libraries(guest PRIVATE flowlua::flow)
]]

local function missing()
  if os.getenv("FLOW_SANITIZED") then return "a program without the sanitizer cannot link the library" end
  for _, tool in ipairs { "cmake", "pkg-config", "cc", "ninja" } do
    if os.execute("command -v " .. tool .. " >/dev/null") ~= 0 then return tool .. " is not installed" end
  end
end

local function must(command)
  local output, code = support.run(command)
  assert.equal(0, code, command .. "\n" .. output)
  return output
end

describe("an installation", function()
  it("is found by pkg-config and CMake, runs, and leaves nothing", function()
    local why = missing()
    if why then return pending(why) end
    local source = support.file("guest.c", PROGRAM)
    local folder = source:match("^(.*)/")
    local file = assert(io.open(folder .. "/CMakeLists.txt", "w"))
    file:write(LISTS)
    file:close()
    local tree = folder .. "/tree/usr/local"
    must(("DESTDIR=%s/tree cmake --install %s --prefix /usr/local"):format(folder, build))

    local flags = must(("PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --cflags --libs flowlua"):format(tree))
    must(("cc %s -o %s/by_pkg_config %s"):format(source, folder, flags:gsub("\n", " ")))
    local version = must(("LD_LIBRARY_PATH=%s/lib %s/by_pkg_config"):format(tree, folder))
    must(("cd %s && cmake -S . -B made -G Ninja -DCMAKE_PREFIX_PATH=%s && cmake --build made"):format(folder, tree))
    assert.equal(version, must(folder .. "/made/guest"))

    -- Nothing of the build folder or of the sources: only what was installed.
    local clean = ("cd / && env -u LUA_PATH -u FLOWLUA_LIB -u FLOW_PLUGINS %s/bin/flowlua "):format(tree)
    assert.equal("3\n", must(clean .. [[-e 'print(require("flow").ones({ 3 }):sum():item())']]))
    local text = must(clean .. "doctor")
    assert.truthy(text:find("modules +" .. tree:gsub("%p", "%%%0") .. "/share/lua/5.1/flow\n"), text)
    for _, plugin in ipairs { "image", "hdf5", "control", "mpi" } do
      local name = "/lib/flowlua/libflow_" .. plugin .. ".so"
      local installed = io.open(tree .. name)
      local built = io.open(("%s/lib/libflow_%s.so"):format(build, plugin))
      assert.equal(built ~= nil, installed ~= nil, name)
      if installed then assert.falsy(text:find("libflow_" .. plugin .. ".so is needed", 1, true), text) end
    end

    must(("DESTDIR=%s/tree cmake -DMANIFEST=%s/install_manifest.txt -P %scmake/uninstall.cmake"):format(folder, build, support.root))
    assert.equal("", must(("find %s/tree ! -type d -o -name 'flow*'"):format(folder)))
  end)
end)

describe("the library", function()
  it("shows functions of flow.h alone, and its version", function()
    local names = must("readelf --dyn-syms -W " .. build .. "/lib/libflow.so.0")
    local count = 0
    for name in names:gmatch("GLOBAL +DEFAULT +%d+ ([%w_]+)\n") do
      assert.equal("flow_", name:sub(1, 5), name)
      count = count + 1
    end
    assert.is_true(count > 100)
    assert.truthy(must("readelf -d " .. build .. "/lib/libflow.so"):find("soname: [libflow.so.0]", 1, true))
  end)
end)
