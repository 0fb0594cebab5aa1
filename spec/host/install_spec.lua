-- install_spec.lua: what `cmake --install` writes: C programs, with and without Lua, find it by pkg-config and by CMake, flowlua runs from
-- where it was put, plugins are found, and `ninja uninstall` leaves nothing of it, but what others put into its folders. DESTDIR moves the
-- tree away from the prefix that it was installed for.
local support = require "spec.support.init"

local build = os.getenv("FLOWLUA_LIB"):match("^(.*)/lib/[^/]*$")

local PROGRAM = [[
#include <stdio.h>
#include "flow.h"
int main(void) { return flow_version()[0] == '0' && flow_abi_version() == FLOW_ABI_VERSION ? puts(flow_version()) < 0 : 1; }
]]
local LUA_PROGRAM = [[
#include <stdio.h>
#include <lauxlib.h>
#include <lualib.h>
#include "flow_lua.h"
int main(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (flow_lua_open(L)) return fprintf(stderr, "%s\n", lua_tostring(L, -1)), 1;
  lua_getfield(L, -1, "version");
  return puts(lua_tostring(L, -1)) < 0;
}
]]
local LISTS = [[
cmake_minimum_required(VERSION 3.22)
project(guest C)
find_package(flowlua 0.2 QUIET)
if(flowlua_FOUND)
  message(FATAL_ERROR "0.1 does not stand for 0.2")
endif()
find_package(flowlua 0.1 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LUAJIT REQUIRED IMPORTED_TARGET luajit)
add_executable(guest guest.c)
target_link_libraries(guest PRIVATE flowlua::flow)
add_executable(guest_lua guest_lua.c)
target_link_libraries(guest_lua PRIVATE flowlua::flow_lua PkgConfig::LUAJIT)
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
    for name, text in pairs { ["CMakeLists.txt"] = LISTS, ["guest_lua.c"] = LUA_PROGRAM } do
      local file = assert(io.open(folder .. "/" .. name, "w"))
      file:write(text)
      file:close()
    end
    local tree = folder .. "/tree/usr/local"
    must(("DESTDIR=%s/tree cmake --install %s --prefix /usr/local"):format(folder, build))

    must(("cmp LICENSE %s/share/doc/flowlua/LICENSE"):format(tree))
    must(("diff -r lua/examples %s/share/doc/flowlua/examples"):format(tree))

    local flags = must(("PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --cflags --libs flowlua"):format(tree))
    must(("cc %s -o %s/by_pkg_config %s"):format(source, folder, flags:gsub("\n", " ")))
    local version = must(("LD_LIBRARY_PATH=%s/lib %s/by_pkg_config"):format(tree, folder))
    must(("cd %s && cmake -S . -B made -G Ninja -DCMAKE_PREFIX_PATH=%s && cmake --build made"):format(folder, tree))
    assert.equal(version, must(folder .. "/made/guest"))

    -- Nothing of the build folder or of the sources: only what was installed.
    local alone = "cd / && env -u LUA_PATH -u FLOWLUA_LIB -u FLOW_PLUGINS "
    assert.equal(version, must(alone .. folder .. "/made/guest_lua"))
    local clean = ("%s%s/bin/flowlua "):format(alone, tree)
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

    local foreign = tree .. "/lib/flowlua/libflow_foreign.so"
    must("touch " .. foreign)
    must(("DESTDIR=%s/tree ninja -C %s uninstall"):format(folder, build))
    assert.equal(tree .. "/lib/flowlua\n" .. foreign .. "\n", must(("find %s/tree ! -type d -o -name 'flow*'"):format(folder)))
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
