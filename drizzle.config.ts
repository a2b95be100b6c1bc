import { defineConfig } from 'drizzle-kit';

/** `npm run migrations` writes what the schema asks for; the store applies it when it opens. */
export default defineConfig({
  dialect: 'postgresql',
  schema: './relay/store/schema.ts',
  out: './relay/store/migrations',
});
