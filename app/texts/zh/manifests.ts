/** Texts of the manifests that Kinora ships, by their English text. */
export const manifests: Readonly<Record<string, string>> = {
  'Puts a computed frame between each two of a video.': '在视频的每两帧之间加入一帧计算出的画面。',
  'Enlarges a video with sharper detail, which may flicker.': '放大视频，细节更清晰，但可能闪烁。',
  'A small demonstration model: soft picture, simple camera moves.':
    '小型演示模型：画面柔和，只会简单的镜头运动。',
  'The Wan2.2-TI2V architecture with small random weights. Its video is moving noise; it shows that everything works.':
    'Wan2.2-TI2V 的结构，权重小而随机。它的视频是流动的噪声，用来展示一切正常。',
  'The real model: 720p image-to-video at 24 frames per second. Fetched once from public files, converted on the way and kept in this browser.':
    '真正的模型：720p 图生视频，每秒 24 帧。从公开文件下载一次，边下载边转换，保存在这个浏览器里。',
  'Two transformers of 14 billion parameters that take turns, the one that most LoRAs are made for. Drafts at 832×480, standard at 1280×720; 16 frames per second.':
    '两个各 140 亿参数的 Transformer 轮流工作，大多数 LoRA 都为它而做。草稿按 832×480 计算，标准按 1280×720；每秒 16 帧。',
  '14 billion parameters, for the LoRAs of Wan2.1. It computes at 832×480, 16 frames per second.':
    '140 亿参数，适用于 Wan2.1 的 LoRA。按 832×480 计算，每秒 16 帧。',
  '14 billion parameters, for the LoRAs of Wan2.1. It computes at 1280×720, 16 frames per second.':
    '140 亿参数，适用于 Wan2.1 的 LoRA。按 1280×720 计算，每秒 16 帧。',
  'Half the download and the disk. The text encoder stays in 8 bits, so that prompts are understood as well.':
    '下载和存储约减半。文本编码器保持 8 位，对提示词的理解不变。',
  'Two files, one for each transformer. Trained with start images; users report slow motion.':
    '两个文件，每个 Transformer 一个。训练时有起始图片；有用户反映动作偏慢。',
  'Trained with start images, at 832×480.': '训练时有起始图片，按 832×480。',
  '8-bit': '8 位',
  '4-bit': '4 位',
  'Best quality. The transformer comes as it is published in Q8_0, without loss.':
    '最佳质量。Transformer 采用公开发布的 Q8_0，没有损失。',
  'A smaller download, and less memory; a little less faithful. The text encoder stays in 8 bits, so that prompts are understood as well.':
    '下载更小，占用内存更少；忠实度略低。文本编码器保持 8 位，对提示词的理解不变。',
  'Trained without start images; users report weaker colours.':
    '训练时没有起始图片；有用户反映色彩较弱。',
  'Two files, together half as large again. Trained without start images; softer, with more motion.':
    '两个文件，合计大一半。训练时没有起始图片；画面更柔和，运动更多。',
  'One pass a step where guidance takes two. Trained without start images.':
    '引导每步要算两遍，它只算一遍。训练时没有起始图片。',
  'The default: small, and fast enough for most computers.':
    '默认：体积小，对大多数电脑来说足够快。',
  'Better wording; three times as large and as slow.': '措辞更好；大小和耗时都是三倍。',
  'What is shown is crushed.': '画面中的物体被压碎。',
  'The look of colour films of the early 1900s.': '二十世纪初彩色电影的画面。',
  'The camera circles half around the subject.': '镜头绕主体转半圈。',
  'The camera flies towards the subject, as from a drone.': '镜头像无人机一样飞向主体。',
  'The subject turns once around itself.': '主体自转一圈。',
  'A hand squeezes the subject like a soft toy.': '一只手像捏软玩具一样捏主体。',
  'The subject inflates like a balloon.': '主体像气球一样膨胀。',
  'The subject loses its air and goes flat.': '主体漏气变扁。',
  'A knife cuts the subject: it is a cake.': '刀切开主体：原来是蛋糕。',
  'A hydraulic press flattens the subject.': '液压机把主体压扁。',
};
