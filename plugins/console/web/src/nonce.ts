/** The nonce of this page's style elements, under a strict content security policy. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';

// The package that keeps the page from scrolling behind a dialog looks for it here:
// https://github.com/theKashey/get-nonce#usage
Object.assign(globalThis, { __webpack_nonce__: nonce });
