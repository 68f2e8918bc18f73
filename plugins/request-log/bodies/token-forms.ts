/** Forms of tokens that services publish so that they can be found; each repetition is bounded. */

export const tokenForms: readonly RegExp[] = [
  // Slack's incoming webhooks.
  /\bhooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/+]{20,200}/g,
  // https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
  /\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255})/g,
  // https://docs.gitlab.com/security/tokens/#token-prefixes
  /\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[\w.-]{16,300}/g,
  // npm, PyPI, Hugging Face, DigitalOcean, Docker.
  /\bnpm_[A-Za-z0-9]{20,64}/g,
  /\bpypi-[\w-]{40,512}/g,
  /\bhf_[A-Za-z0-9]{20,64}/g,
  /\bdo[oprt]_v1_[a-f0-9]{40,80}/g,
  /\bdckr_(?:pat|oat)_[\w-]{16,80}/g,
  // Linear, Notion, Postman, Pulumi, Terraform.
  /\blin_(?:api|oauth)_\w{20,80}/g,
  /\b(?:secret_|ntn_)[A-Za-z0-9]{30,80}/g,
  /\bPMAK-[a-f0-9-]{40,80}/g,
  /\bpul-[a-f0-9]{40}/g,
  /\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,120}/g,
  // Vault, Fly, Shopify, Doppler.
  /\bhv[sbr]\.[\w-]{20,300}/g,
  /\bfo1_[\w-]{40,80}/g,
  /\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}/g,
  /\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,80}/g,
  // Stripe, Square, SendGrid, Mailgun, Twilio, Telegram, Discord.
  /\b(?:whsec_[A-Za-z0-9+/=]{20,120}|sq0[a-z]{3}-[\w-]{20,60}|SG\.[\w-]{16,64}\.[\w-]{16,100}|key-[a-f0-9]{32}|(?:AC|SK)[a-f0-9]{32})\b/g,
  /\b\d{6,12}:AA[\w-]{32,36}|\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}/g,
  // Google's OAuth tokens and client secrets, age keys, Azure's storage and connection strings.
  /\bya29\.[\w-]{20,2048}|\bGOCSPX-[\w-]{20,60}|\b1\/\/0[\w-]{30,200}|\bAGE-SECRET-KEY-1[A-Z0-9]{40,80}/g,
  /(?<=\b(?:AccountKey|SharedAccessKey|sig)=)[A-Za-z0-9+/%=]{20,200}/g,
];
