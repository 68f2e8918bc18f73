/** Chinese texts of the operator's pages of files and batches. */
import type en from '../en/operator-files.ts';
import type { Words } from '../en.ts';

const texts: Words<typeof en> = {
  files: {
    title: '文件',
    intro: '客户上传的文件，以及批处理的结果。图像和视频在“任务”页面。',
    anyPurpose: '任意用途',
    detail: '文件',
    mediaType: '类型',
    accountBytes: '该账户的全部文件',
    remove: '删除文件',
    removeTitle: '删除 {{name}}？',
    removeText: '删除后无法恢复。尚未读取该文件的批处理会失败。',
    removed: '文件已删除。',
    gone: '该文件已不存在。',
    empty: '没有符合筛选条件的文件',
    emptyHint: '客户用 POST /v1/files 上传文件，批处理把结果写成文件。',
  },
  batches: {
    title: '批处理',
    intro: '一次下单的大量请求，在一天内完成：逐个调用，或作为供应商的批处理。',
    anyEndpoint: '任意端点',
    madeBy: '执行方式',
    calls: '逐个调用',
    lines: '行数',
    detail: '批处理',
    cancel: '取消批处理',
    cancelTitle: '取消批处理 {{name}}？',
    cancelText: '正在运行的行会完成并计费，其余的不再执行。',
    cancelled: '批处理正在取消。',
    files: '相关文件',
    vendor: '在供应商处',
    vendorModel: '{{asked}}，即 {{model}}',
    vendorState: {
      preparing: '正在为每一行预留金额',
      uploading: '正在上传请求',
      ordering: '正在下单',
      running: '供应商正在处理',
      reading: '正在读取结果',
      ended: '已结束',
    },
    vendorResult: {
      completed: '供应商已完成',
      cancelled: '供应商已取消',
      expired: '在供应商处已过期',
    },
    protocol: '协议',
    ordered: '下单时间',
    vendorId: '供应商的 ID',
    cancelSent: '已请求供应商取消',
    empty: '没有符合筛选条件的批处理',
    emptyHint: '客户用 POST /v1/batches、/v1/messages/batches 或 batchGenerateContent 创建。',
  },
};
export default texts;
