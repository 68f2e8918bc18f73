/** The word by which this page's style elements prove that they are its own, under a strict content security policy. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
