-- image.lua: cases of ops_spec.lua. Made by ops.py.
return {
  ["image.affine_transform"] = {
    { 972, 972, [[ops.image.affine_transform(a, b, { interpolation = "nearest", fill_mode = "constant" })]], inputs = 2, tolerance = 1e-05 },
    { 973, 973, [[ops.image.affine_transform(a, b, { interpolation = "nearest", fill_mode = "nearest" })]], inputs = 2, tolerance = 1e-05 },
    { 974, 974, [[ops.image.affine_transform(a, b, { interpolation = "nearest", fill_mode = "wrap" })]], inputs = 2, tolerance = 1e-05 },
    { 975, 975, [[ops.image.affine_transform(a, b, { interpolation = "nearest", fill_mode = "reflect" })]], inputs = 2, tolerance = 1e-05 },
    { 976, 976, [[ops.image.affine_transform(a, b, { interpolation = "bilinear", fill_mode = "constant" })]], inputs = 2, tolerance = 1e-05 },
    { 977, 977, [[ops.image.affine_transform(a, b, { interpolation = "bilinear", fill_mode = "nearest" })]], inputs = 2, tolerance = 1e-05 },
    { 978, 978, [[ops.image.affine_transform(a, b, { interpolation = "bilinear", fill_mode = "wrap" })]], inputs = 2, tolerance = 1e-05 },
    { 979, 979, [[ops.image.affine_transform(a, b, { interpolation = "bilinear", fill_mode = "reflect" })]], inputs = 2, tolerance = 1e-05 } },
  ["image.crop_images"] = {
    { 963, 963, [[ops.image.crop_images(a, { top_cropping = 1, left_cropping = 2, bottom_cropping = 3, right_cropping = 0 })]], gradients = { 1 } },
    { 964, 964, [[ops.image.crop_images(a, { bottom_cropping = 1, right_cropping = 2, target_height = 4, target_width = 3 })]], gradients = { 1 } } },
  ["image.extract_patches"] = { { 982, 982, [[ops.image.extract_patches(a, { 3, 2 }, { padding = "valid" })]], gradients = { 1 } },
    { 983, 983, [[ops.image.extract_patches(a, 2, { strides = 1, padding = "valid" })]], gradients = { 1 } },
    { 985, 985, [[ops.image.extract_patches(a, { 3, 2 }, { padding = "same" })]], gradients = { 1 } },
    { 986, 986, [[ops.image.extract_patches(a, 2, { strides = 1, padding = "same" })]], gradients = { 1 } } },
  ["image.extract_patches_3d"] = {
    { 984, 984, [[ops.image.extract_patches_3d(a, 2, { strides = 1, padding = "valid" })]], gradients = { 1 } },
    { 987, 987, [[ops.image.extract_patches_3d(a, 2, { strides = 1, padding = "same" })]], gradients = { 1 } } },
  ["image.gaussian_blur"] = {
    { 981, 981, [[ops.image.gaussian_blur(a, { kernel_size = { 3, 3 }, sigma = { 1.0, 2.0 } })]], tolerance = 1e-05 } },
  ["image.hsv_to_rgb"] = { { 959, 960, [[ops.image.hsv_to_rgb(a)]], tolerance = 1e-06 } },
  ["image.map_coordinates"] = {
    { 988, 988, [[ops.image.map_coordinates(a, b, 0, { fill_mode = "constant" })]], inputs = 2, tolerance = 1e-06 },
    { 989, 989, [[ops.image.map_coordinates(a, b, 0, { fill_mode = "nearest" })]], inputs = 2, tolerance = 1e-06 },
    { 990, 990, [[ops.image.map_coordinates(a, b, 0, { fill_mode = "wrap" })]], inputs = 2, tolerance = 1e-06 },
    { 991, 991, [[ops.image.map_coordinates(a, b, 0, { fill_mode = "reflect" })]], inputs = 2, tolerance = 1e-06 },
    { 992, 992, [[ops.image.map_coordinates(a, b, 1, { fill_mode = "constant" })]], inputs = 2, tolerance = 1e-06 },
    { 993, 993, [[ops.image.map_coordinates(a, b, 1, { fill_mode = "nearest" })]], inputs = 2, tolerance = 1e-06 },
    { 994, 994, [[ops.image.map_coordinates(a, b, 1, { fill_mode = "wrap" })]], inputs = 2, tolerance = 1e-06 },
    { 995, 995, [[ops.image.map_coordinates(a, b, 1, { fill_mode = "reflect" })]], inputs = 2, tolerance = 1e-06 } },
  ["image.pad_images"] = {
    { 961, 961, [[ops.image.pad_images(a, { top_padding = 1, left_padding = 2, bottom_padding = 3, right_padding = 0 })]], gradients = { 1 } },
    { 962, 962, [[ops.image.pad_images(a, { top_padding = 1, left_padding = 2, target_height = 9, target_width = 12 })]], gradients = { 1 } } },
  ["image.perspective_transform"] = { { 980, 980, [[ops.image.perspective_transform(a, b, c)]], inputs = 3, tolerance = 0.001 } },
  ["image.resize"] = { { 965, 965, [[ops.image.resize(a, { 4, 9 }, { interpolation = "nearest" })]], tolerance = 1e-05 },
    { 966, 966, [[ops.image.resize(a, { 4, 9 }, { interpolation = "bilinear" })]], tolerance = 1e-05 },
    { 967, 967, [[ops.image.resize(a, { 4, 9 }, { interpolation = "bicubic" })]], tolerance = 1e-05 },
    { 968, 968, [[ops.image.resize(a, { 4, 9 }, { interpolation = "lanczos3" })]], tolerance = 1e-05 },
    { 969, 969, [[ops.image.resize(a, { 4, 4 }, { antialias = true })]], tolerance = 1e-05 },
    { 970, 970, [[ops.image.resize(a, { 4, 4 }, { crop_to_aspect_ratio = true })]], tolerance = 1e-05 },
    { 971, 971, [[ops.image.resize(a, { 4, 4 }, { pad_to_aspect_ratio = true })]], tolerance = 1e-05 } },
  ["image.rgb_to_grayscale"] = { { 955, 955, [[ops.image.rgb_to_grayscale(a)]], gradients = { 1 }, tolerance = 1e-06 },
    { 956, 956, [[ops.image.rgb_to_grayscale(a)]], tolerance = 1e-06 } },
  ["image.rgb_to_hsv"] = { { 957, 958, [[ops.image.rgb_to_hsv(a)]], tolerance = 1e-06 } },
}
