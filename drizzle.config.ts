/** `npm run migrations` writes what the schema asks for; the store applies it when it opens. */
export default {
  dialect: 'postgresql',
  schema: './relay/store/schema.ts',
  out: './relay/store/migrations',
};
