import type { TermsSection } from '../../../lib/contract';

/** A translation of the terms of use, for understanding; the English text is what is accepted. */
export const terms: readonly TermsSection[] = [
  {
    title: '不得制作的内容',
    text: 'Kinora 及其运行的模型不得用于以下用途（本文是译文，以英文原文为准）：',
    points: [
      '违反任何适用于你的法律或法规；',
      '剥削或伤害未成年人，或企图这样做；',
      '为伤害他人而故意制作或传播虚假信息；',
      '骚扰、威胁、诽谤或侮辱任何人；',
      '未经本人同意展示其裸体或性场面，或制作非法色情内容；',
      '制作或传播可用来伤害他人的个人信息；',
      '作出影响他人法律权利或义务的全自动决定。',
    ],
  },
  {
    title: '模型作者的要求',
    text:
      'Wan2.2 的作者对你制作的内容不主张任何权利，并要求你对模型的使用方式负责。以下是他们在许可证（Apache-2.0）' +
      '之外的要求，不属于许可证。不要分享这样的内容：',
    points: [
      '违反法律的；',
      '伤害个人或群体的；',
      '传播意在伤害他人的个人信息的；',
      '传播虚假信息的；',
      '针对弱势人群的。',
    ],
    source: { name: 'Wan2.2 的 README', url: 'https://github.com/Wan-Video/Wan2.2' },
  },
  {
    title: '安全检查会出错',
    text:
      '安全检查是一个小型图像分类模型。它会漏掉不安全的画面，也会误标无害的画面；它只看一部分画面，而且只认识裸体和' +
      '性内容。没有标记的视频并不等于无害：你仍要对自己制作和分享的内容负责。',
    points: [],
  },
  {
    title: '视频不是事实',
    text:
      '一切都是生成的。没有哪个视频展示了真正发生过的事，与真实人物或事件相像也不能证明什么。当别人可能把视频当作' +
      '实录时，请说明它是生成的。',
    points: [],
  },
];
