-- luacheck: LuaJIT everywhere, busted's globals in the specs.
std = "luajit"
max_line_length = 140
unused_args = false                       -- methods keep the signature that callers see
files["spec"] = { std = "luajit+busted" }
files["spec/golden/manifest/"] = { max_line_length = false }   -- generated
files["spec/golden/gradients.lua"] = { max_line_length = false }
files["lua/flow/cdef/"] = { max_line_length = false }          -- generated from flow.h
ignore = { "581" }                        -- "not (x <= y)" is how a NaN is made to count
