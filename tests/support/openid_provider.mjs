// An OpenID Connect provider on loopback, with its own pages for signing in and agreeing. Whoever signs in as `ann`
// is ann@example.org; the address is verified, unless the name begins with `unverified`.
const [library, port, callback] = process.argv.slice(2);
const { Provider } = await import(library);
const issuer = `http://127.0.0.1:${port}`;
const client = { redirect_uris: [callback], grant_types: ["authorization_code"], response_types: ["code"] };

const provider = new Provider(issuer, {
  clients: [
    { ...client, client_id: "headwater", client_secret: "a secret: & of 100 % strength" },
    { ...client, client_id: "headwater-public", token_endpoint_auth_method: "none" },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  cookies: { keys: ["only for tests"] },
  pkce: { required: () => true },
  async findAccount(_, sub) {
    const verified = !sub.startsWith("unverified");
    const name = sub[0].toUpperCase() + sub.slice(1);
    return { accountId: sub, claims: async () => ({ sub, name, email: `${sub}@example.org`, email_verified: verified }) };
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log(`ready at ${issuer}`));
