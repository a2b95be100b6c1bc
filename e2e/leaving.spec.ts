import { expect, full, picturePath, test } from './support/fixtures';

test(
  'a video that is made shows on every other page, with a link back',
  full,
  async ({ studio, page }) => {
    const link = page.getByRole('link', { name: /^Your video: / });
    const goTo = (name: string) =>
      page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
    await studio.fill({ image: picturePath, prompt: 'A kite climbs', steps: 40 });
    await (await studio.field('Duration')).fill('10');
    await studio.chooseCpu();
    await studio.generate();
    await studio.waitForStep(1, 40);
    await expect(link).toHaveCount(0);
    for (const name of ['Models', 'Serve', 'Keys', 'Docs']) {
      if (name === 'Serve') await goTo('API');
      await goTo(name);
      await expect(page.getByRole('link', { name, exact: true })).toHaveAttribute(
        'aria-current',
        'page',
      );
      await expect(link).toContainText(/Your video: \d+ %/);
      // The page's own title, with the progress before it.
      await expect(page).toHaveTitle(new RegExp(`^\\d+% · ${name} · Kinora$`));
    }
    await expect(link).toContainText(/about \d+ s left/);
    await link.click();
    await expect(studio.progress).toBeVisible();
    await expect(link).toHaveCount(0);
    await studio.cancel();
    await expect(page).toHaveTitle('Kinora');
  },
);
