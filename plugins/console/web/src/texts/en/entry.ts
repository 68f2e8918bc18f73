/** English texts of signing in and up. */
export default {
  signIn: { title: 'Sign in' },
};
