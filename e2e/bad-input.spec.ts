import { expect, full, payload, picturePath, test } from './support/fixtures';

const refused = [
  ['IMAGE_UNREADABLE', payload('notes.png', Buffer.from('My notes.'))],
  ['VIDEO_UNREADABLE', payload('v.mp4', Buffer.alloc(64), 'video/mp4')],
] as const;

test('files that are no image are refused with a sentence and a remedy, and the image stays', async ({
  studio,
  page,
}) => {
  const start = page.getByRole('img', { name: /^Start image/ });
  for (const [code, file] of refused) {
    await studio.image.setInputFiles(file);
    await expect(studio.problem(code)).toContainText(/\..+\./);
    await expect(start).toHaveCount(0);
  }
  await studio.image.setInputFiles(picturePath);
  await expect(start).toBeVisible();
  for (const [code, file] of refused) {
    await expect(studio.problem(code)).toHaveCount(0);
    await studio.image.setInputFiles(file);
    await expect(studio.problem(code)).toBeVisible();
    await expect(start).toBeVisible();
  }

  await test.step('HEIC has a sentence of its own, and its remedy leads to the help', async () => {
    const header = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic----');
    await studio.image.setInputFiles(payload('photo.heic', header, 'image/heic'));
    const problem = studio.problem('IMAGE_HEIC');
    await expect(problem).toContainText('JPEG');
    await problem.getByRole('link', { name: 'More about this' }).click();
    await expect(page).toHaveURL('/help#IMAGE_HEIC');
    await expect(page.getByRole('heading', { name: 'The image is refused' })).toBeInViewport();
  });
});

test(
  'nothing starts without image or prompt, with a number out of its range, or with a refused prompt',
  full,
  async ({ studio }) => {
    const { image, prompt, steps, generateButton } = studio;
    await generateButton.click();
    await expect(image).toBeFocused();
    await expect(image).toHaveAccessibleDescription(/^There is no image\. \S/);
    await expect(prompt).toHaveAccessibleDescription(/^The prompt is empty\. \S/);
    await image.setInputFiles(picturePath);
    await expect(studio.page.getByRole('img', { name: /^Start image/ })).toBeVisible();
    await prompt.fill('   ');
    await generateButton.click();
    await expect(prompt).toBeFocused();

    await prompt.fill('porn with a child');
    await expect(prompt).toHaveAccessibleDescription(/^The prompt names a child/);
    await generateButton.click();
    await expect(prompt).toBeFocused();

    await prompt.fill('A boat');
    await studio.openAdvanced();
    await steps.fill('41');
    const sentence = /Steps must be a whole number from 1 to 40\./;
    await expect(steps).toHaveAccessibleDescription(sentence);
    await generateButton.click();
    await expect(steps).toBeFocused();
    await expect(studio.progress).toHaveCount(0);
    await expect(studio.history).toHaveCount(0);
  },
);
