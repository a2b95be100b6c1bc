import { expect, payload, picturePath, test } from './support/fixtures';

const files = [
  ['not an image', payload('notes.png', Buffer.from('These are my notes.')), 'IMAGE_UNREADABLE'],
  ['a video of another kind', payload('v.mp4', Buffer.alloc(64), 'video/mp4'), 'VIDEO_UNREADABLE'],
] as const;

for (const [title, file, code] of files) {
  test(`${title} is refused with a sentence and a remedy`, async ({ studio, page }) => {
    await studio.image.setInputFiles(file);
    const problem = studio.problem(code);
    await expect(problem).toBeVisible();
    expect(
      ((await problem.textContent()) ?? '').split('.').filter((part) => part.trim()).length,
    ).toBeGreaterThan(1);
    await expect(page.getByRole('img', { name: /^Start image/ })).toHaveCount(0);
    // A good one afterwards takes the complaint away.
    await studio.image.setInputFiles(picturePath);
    await expect(page.getByRole('img', { name: /^Start image/ })).toBeVisible();
    await expect(problem).toHaveCount(0);
  });
}

test('a bad image leaves the good one in place', async ({ studio, page }) => {
  await studio.image.setInputFiles(picturePath);
  await studio.image.setInputFiles(payload('empty.png', Buffer.alloc(0)));
  await expect(studio.problem('IMAGE_EMPTY')).toBeVisible();
  await expect(page.getByRole('img', { name: /^Start image/ })).toBeVisible();
});

test('without image and prompt nothing starts, and the first gap gets the focus', async ({
  studio,
}) => {
  await studio.generateButton.click();
  await expect(studio.image).toBeFocused();
  await expect(studio.image).toHaveAccessibleDescription(/^There is no image\. \S/);
  await expect(studio.prompt).toHaveAccessibleDescription(/^The prompt is empty\. \S/);
  await studio.image.setInputFiles(picturePath);
  await studio.prompt.fill('   ');
  await studio.generateButton.click();
  await expect(studio.prompt).toBeFocused();
  await expect(studio.progress).toHaveCount(0);
  await expect(studio.history).toHaveCount(0);
});

test('a number out of its range is told at its field, and starts nothing', async ({ studio }) => {
  await studio.fill({ image: picturePath, prompt: 'A boat', steps: 1 });
  for (const [label, value, sentence] of [
    ['Steps', '41', 'Steps must be a whole number from 1 to 40.'],
    ['Duration', '4', 'Duration must be a whole number from 5 to 10.'],
    ['Guidance', '10.5', 'Guidance must be a number from 1 to 10.'],
    ['Flow shift', '0', 'Flow shift must be a number from 1 to 10.'],
    ['Seed', '10000000000', 'Seed must be a whole number from -1 to 9999999999.'],
  ] as const) {
    await test.step(`${label} ${value}`, async () => {
      const field = await studio.field(label);
      const good = await field.inputValue();
      await field.fill(value);
      await expect(field).toHaveAccessibleDescription(new RegExp(sentence.replaceAll('.', '\\.')));
      await studio.prompt.focus();
      await studio.generateButton.click();
      await expect(field).toBeFocused();
      await expect(studio.progress).toHaveCount(0);
      await field.fill(good);
    });
  }
});
