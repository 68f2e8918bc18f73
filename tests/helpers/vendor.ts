/** The replaying vendor that authors of plugins test with. */
export * from '../../plugins/common/author/vendor.ts';
