/** English texts of the client's pages. */
export default {
  home: { title: 'Home' },
};
