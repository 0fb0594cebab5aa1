-- einops.lua: cases of ops_spec.lua. Made by ops.py.
return {
  ["rearrange"] = { { 473, 473, [[ops.rearrange(a, "b h w c -> b (h w) c")]], gradients = { 1 } },
    { 474, 474, [[ops.rearrange(a, "b (h k) w c -> b h w (k c)", { k = 2 })]], gradients = { 1 } },
    { 475, 475, [[ops.rearrange(a, "b h w c -> (b c) w h")]], gradients = { 1 } } },
}
