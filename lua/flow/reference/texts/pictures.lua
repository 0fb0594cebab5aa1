-- pictures.lua: what flow.help says of flow.image: see reference/texts.lua for the form.
return [==[
flow.utils.bounding_boxes.convert_format: Boxes in another format: xyxy, yxyx, xywh, center_xywh, center_yxhw, or shares, rel_xyxy.
  print(flow.utils.bounding_boxes.convert_format({ { 10, 20, 30, 60 } }, "xyxy", "xywh")[1][4]:item())      --> 40
flow.utils.bounding_boxes.clip_to_image_size: Boxes within a picture; labels of boxes of which nothing is left become -1.
  local boxes = { boxes = { { -5, 0, 10, 10 }, { -5, -5, 0, 0 } }, labels = { 1, 2 } }
  print(flow.utils.bounding_boxes.clip_to_image_size(boxes, 8, 8).labels[2]:item())      --> -1
flow.utils.bounding_boxes.crop: Boxes in the part of a picture that begins at top and left.
  print(flow.utils.bounding_boxes.crop({ { 10, 20, 30, 60 } }, 10, 5, 40, 40)[1][4]:item())      --> 40
flow.utils.bounding_boxes.pad: Boxes in a picture that has got rows above it and columns before it.
  print(flow.utils.bounding_boxes.pad({ { 10, 20, 30, 60 } }, 10, 5)[1][1]:item())      --> 15
flow.utils.bounding_boxes.affine_transform: The boxes around boxes that are turned, moved, scaled and sheared with their pictures.
  local turned = flow.utils.bounding_boxes.affine_transform({ { { 0, 0, 4, 2 } } }, { 180 }, { 0 }, { 0 }, { 1 }, { 0 }, { 0 }, 9, 9)
  print(turned[1][1][1]:item() > 3.9)      --> true
flow.utils.bounding_boxes.encode_box_to_deltas: What brings anchors to boxes, as networks that find objects learn it.
  print(flow.utils.bounding_boxes.encode_box_to_deltas({ { 0, 0, 2, 2 } }, { { 1, 1, 3, 3 } }, "xyxy", "xyxy")[1][1]:item())      --> 0.5
flow.utils.bounding_boxes.decode_deltas_to_boxes: The boxes of anchors and of what a network says of them.
  local deltas = { { 0.5, 0.5, 0, 0 } }
  print(flow.utils.bounding_boxes.decode_deltas_to_boxes({ { 0, 0, 2, 2 } }, deltas, "xyxy", "xyxy")[1][3]:item())      --> 3
flow.utils.bounding_boxes.compute_iou: The share of their area that each of some boxes and each of others have in common.
  print(flow.utils.bounding_boxes.compute_iou({ { 0, 0, 2, 2 } }, { { 0, 0, 2, 1 }, { 5, 5, 6, 6 } }, "xyxy").shape[2])      --> 2
flow.utils.bounding_boxes.compute_ciou: The same of pairs of boxes, less for distance and for other proportions.
  print(flow.utils.bounding_boxes.compute_ciou({ { 0, 0, 2, 2 } }, { { 5, 5, 6, 6 } }, "xyxy")[1]:item() < 0)      --> true
flow.image.load: A picture from a file as a tensor {height, width, channels} of uint8.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.image.load("a.png").shape[2])      --> 6
flow.image.save: Writes a picture {height, width, channels} as .png, .bmp or .jpg.
  flow.image.save("a.png", flow.full({ 4, 4, 3 }, 100, { dtype = "uint8" }))
flow.image.decode: A picture from the bytes of a file.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  local file = io.open("a.png", "rb")
  print(flow.image.decode(file:read("*a")).shape[1])      --> 4
  file:close()
flow.image.resize: A picture, or a batch of them, in another height and width.
  print(flow.image.resize(flow.zeros { 4, 6, 3 }, { 2, 3 }).shape[1])      --> 2
flow.image.decode_image: The same with Keras' options; channels = 0, the default, gives as many as the file has.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.image.decode_image(flow.io.read_file("a.png"), { channels = 1 }).shape[3])      --> 1
flow.image.decode_jpeg: The same as decode_image.
  flow.image.save("a.jpg", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.image.decode_jpeg(flow.io.read_file("a.jpg")).shape[1])      --> 4
flow.image.decode_png: The same as decode_image.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  local paths = flow.data.Dataset.from_tensor_slices(flow.tensor { "a.png" })
  for x in paths:map(function(path) return flow.image.decode_png(flow.io.read_file(path)) end):iter() do print(x.shape[2]) end      --> 6
flow.image.decode_bmp: The same as decode_image.
  flow.image.save("a.bmp", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.image.decode_bmp(flow.io.read_file("a.bmp")).shape[1])      --> 4
flow.image.decode_gif: The same as decode_image: the first picture.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.image.decode_gif(flow.io.read_file("a.png")).shape[1])      --> 4
flow.image.convert_image_dtype: A picture in another dtype: whole numbers become floats from 0 to 1, and back.
  print(flow.image.convert_image_dtype(flow.full({ 2, 2, 3 }, 255, { dtype = "uint8" }), "float32"):max():item())      --> 1
flow.image.ResizeMethod: The names of ways to interpolate, as tf.image has them.
  print(flow.image.ResizeMethod.BICUBIC)      --> bicubic
flow.image.flip_left_right: Pictures mirrored from left to right.
  print(flow.image.flip_left_right(flow.tensor { { { 1 }, { 2 } } })[{ 1, 1, 1 }]:item())      --> 2
flow.image.flip_up_down: Pictures mirrored from top to bottom.
  print(flow.image.flip_up_down(flow.tensor { { { 1 } }, { { 2 } } })[{ 1, 1, 1 }]:item())      --> 2
flow.image.transpose: Pictures with rows and columns swapped.
  print(flow.image.transpose(flow.zeros { 4, 6, 3 }).shape[1])      --> 6
flow.image.rot90: Pictures turned by quarters against the clock.
  print(flow.image.rot90(flow.zeros { 4, 6, 3 }, { k = 3 }).shape[1])      --> 6
flow.image.random_flip_left_right: Half of the pictures mirrored from left to right.
  print(flow.image.random_flip_left_right(flow.zeros { 4, 6, 3 }).shape[2])      --> 6
flow.image.random_flip_up_down: Half of the pictures mirrored from top to bottom.
  print(flow.image.random_flip_up_down(flow.zeros { 4, 6, 3 }).shape[1])      --> 4
flow.image.stateless_random_flip_left_right: The same as random_flip_left_right by a seed of two numbers.
  print(flow.image.stateless_random_flip_left_right(flow.zeros { 4, 6, 3 }, { 1, 2 }).shape[2])      --> 6
flow.image.stateless_random_flip_up_down: The same as random_flip_up_down by a seed of two numbers.
  print(flow.image.stateless_random_flip_up_down(flow.zeros { 4, 6, 3 }, { 1, 2 }).shape[1])      --> 4
flow.image.crop_to_bounding_box: A part of pictures: offset_height and offset_width count from 0.
  print(flow.image.crop_to_bounding_box(flow.zeros { 4, 6, 3 }, 1, 2, 3, 4).shape[2])      --> 4
flow.image.central_crop: The middle of pictures, a share of their height and width.
  print(flow.image.central_crop(flow.zeros { 4, 6, 3 }, 0.5).shape[2])      --> 4
flow.image.random_crop: A part of this size of a tensor, at a random place.
  print(flow.image.random_crop(flow.zeros { 4, 6, 3 }, { 2, 2, 3 }).shape[1])      --> 2
flow.image.stateless_random_crop: The same by a seed of two numbers.
  print(flow.image.stateless_random_crop(flow.zeros { 4, 6, 3 }, { 2, 2, 3 }, { 1, 2 }).shape[1])      --> 2
flow.image.pad_to_bounding_box: Pictures with zeros around, where they begin at the offsets, which count from 0.
  print(flow.image.pad_to_bounding_box(flow.ones { 1, 1, 1 }, 1, 2, 3, 4):sum():item())      --> 1
flow.image.resize_with_crop_or_pad: Pictures of this size: what is too much is cut in the middle, zeros are around what is too little.
  print(flow.image.resize_with_crop_or_pad(flow.zeros { 4, 6, 3 }, 5, 5).shape[2])      --> 5
flow.image.resize_with_pad: Pictures as large as they fit into this size, with zeros around.
  print(flow.image.resize_with_pad(flow.ones { 4, 8, 3 }, 8, 8).shape[1])      --> 8
flow.image.rgb_to_grayscale: One channel of colours; whole numbers stay whole.
  print(flow.image.rgb_to_grayscale(flow.ones { 4, 6, 3 }).shape[3])      --> 1
flow.image.grayscale_to_rgb: Three channels of one.
  print(flow.image.grayscale_to_rgb(flow.ones { 4, 6, 1 }).shape[3])      --> 3
flow.image.rgb_to_hsv: Colours as hue, saturation and value, from 0 to 1.
  print(flow.image.rgb_to_hsv(flow.tensor { { { 1, 0, 0 } } })[{ 1, 1, 2 }]:item())      --> 1
flow.image.hsv_to_rgb: The colours of hue, saturation and value.
  print(flow.image.hsv_to_rgb(flow.tensor { { { 0, 1, 1 } } })[{ 1, 1, 1 }]:item())      --> 1
flow.image.rgb_to_yiq: Colours as luminance and two differences, as NTSC has them.
  print(flow.image.rgb_to_yiq(flow.tensor { { { 1, 1, 1 } } })[{ 1, 1, 1 }]:item())      --> 1
flow.image.yiq_to_rgb: The colours of luminance and two differences, as NTSC has them.
  print(flow.image.yiq_to_rgb(flow.tensor { { { 1, 0, 0 } } })[{ 1, 1, 3 }]:item())      --> 1
flow.image.rgb_to_yuv: Colours as luminance and two differences, as PAL has them.
  print(flow.image.rgb_to_yuv(flow.tensor { { { 1, 1, 1 } } })[{ 1, 1, 1 }]:item())      --> 1
flow.image.yuv_to_rgb: The colours of luminance and two differences, as PAL has them.
  print(flow.image.yuv_to_rgb(flow.tensor { { { 1, 0, 0 } } })[{ 1, 1, 3 }]:item())      --> 1
flow.image.adjust_brightness: Pictures with a number added; whole numbers count as floats from 0 to 1.
  print(flow.image.adjust_brightness(flow.full({ 2, 2, 3 }, 51, { dtype = "uint8" }), 0.2):max():item())      --> 102
flow.image.adjust_contrast: Pictures of which the distances from the mean of their channel are multiplied.
  print(flow.image.adjust_contrast(flow.tensor { { { 1 }, { 3 } } }, 2):max():item())      --> 4
flow.image.adjust_gamma: gain times the picture to the power gamma.
  print(flow.image.adjust_gamma(flow.full({ 1, 1, 3 }, 3), 2):max():item())      --> 9
flow.image.adjust_hue: Colours of which the hue is turned by a share of the circle.
  print(flow.image.adjust_hue(flow.tensor { { { 1, 0, 0 } } }, 0.5):max():item())      --> 1
flow.image.adjust_saturation: Colours of which the saturation is multiplied.
  print(flow.image.adjust_saturation(flow.tensor { { { 1, 0, 0 } } }, 0)[{ 1, 1, 2 }]:item())      --> 1
flow.image.random_brightness: adjust_brightness by a random number from -max_delta to max_delta.
  print(flow.image.random_brightness(flow.zeros { 2, 2, 3 }, 0.1):max():item() <= 0.1)      --> true
flow.image.random_contrast: adjust_contrast by a random number from lower to upper.
  print(flow.image.random_contrast(flow.zeros { 2, 2, 3 }, 0.5, 1.5):max():item())      --> 0
flow.image.random_hue: adjust_hue by a random number from -max_delta to max_delta.
  print(flow.image.random_hue(flow.ones { 2, 2, 3 }, 0.2):max():item())      --> 1
flow.image.random_saturation: adjust_saturation by a random number from lower to upper.
  print(flow.image.random_saturation(flow.ones { 2, 2, 3 }, 0.5, 1.5):max():item())      --> 1
flow.image.stateless_random_brightness: The same as random_brightness by a seed of two numbers.
  print(flow.image.stateless_random_brightness(flow.zeros { 2, 2, 3 }, 0.1, { 1, 2 }):max():item() <= 0.1)      --> true
flow.image.stateless_random_contrast: The same as random_contrast by a seed of two numbers.
  print(flow.image.stateless_random_contrast(flow.zeros { 2, 2, 3 }, 0.5, 1.5, { 1, 2 }):max():item())      --> 0
flow.image.stateless_random_hue: The same as random_hue by a seed of two numbers.
  print(flow.image.stateless_random_hue(flow.ones { 2, 2, 3 }, 0.2, { 1, 2 }):max():item())      --> 1
flow.image.stateless_random_saturation: The same as random_saturation by a seed of two numbers.
  print(flow.image.stateless_random_saturation(flow.ones { 2, 2, 3 }, 0.5, 1.5, { 1, 2 }):max():item())      --> 1
flow.image.per_image_standardization: Each picture with mean 0 and standard deviation 1, in float32.
  print(flow.image.per_image_standardization(flow.tensor { { { 1 }, { 3 } } }):max():item())      --> 1
flow.image.image_gradients: A list of the differences to the pixels below and to the right.
  print(#flow.image.image_gradients(flow.ones { 1, 4, 4, 1 }))      --> 2
flow.image.sobel_edges: Sobel's vertical and horizontal edges, along a new last axis.
  print(flow.image.sobel_edges(flow.ones { 1, 4, 4, 3 }).shape[5])      --> 2
flow.image.total_variation: The sum of the absolute differences of neighbouring pixels, of each picture.
  print(flow.image.total_variation(flow.tensor { { { 1 }, { 3 } } }):item())      --> 2
flow.image.psnr: How far pictures are apart, in decibels.
  print(math.floor(flow.image.psnr(flow.zeros { 4, 4, 3 }, flow.full({ 4, 4, 3 }, 0.1), 1):item() + 0.5))      --> 20
flow.image.ssim: The structural similarity of pictures, 1 where they are equal.
  local x = flow.random.uniform { 12, 12, 3 }
  print(math.floor(flow.image.ssim(x, x, 1):item() + 0.5))      --> 1
flow.image.extract_patches: Patches of a batch of pictures, each along the last axis.
  print(flow.image.extract_patches(flow.ones { 1, 4, 4, 1 }, { 1, 2, 2, 1 }, { 1, 2, 2, 1 }, { 1, 1, 1, 1 }, "VALID").shape[4])      --> 4
flow.image.non_max_suppression: The positions of boxes, the best first, of which none overlaps a better one by more than iou_threshold.
  local boxes = flow.tensor { { 0, 0, 1, 1 }, { 0, 0.1, 1, 1 }, { 2, 2, 3, 3 } }
  print(flow.image.non_max_suppression(boxes, flow.tensor { 0.5, 0.9, 0.7 }, 3).shape[1])      --> 2
flow.image.combined_non_max_suppression: Boxes, scores and classes that stay of a batch, and how many.
  local found = flow.image.combined_non_max_suppression(flow.ones { 1, 2, 1, 4 }, flow.ones { 1, 2, 3 }, 2, 5)
  print(found.valid_detections[1]:item())      --> 5
flow.image.crop_and_resize: Parts of pictures in one size: boxes in shares of height and width, box_indices the positions of the pictures.
  local boxes = flow.tensor { { 0, 0, 0.5, 0.5 } }
  print(flow.image.crop_and_resize(flow.ones { 2, 8, 8, 3 }, boxes, flow.tensor({ 1 }, { dtype = "int32" }), { 4, 4 }).shape[2])      --> 4
]==]
