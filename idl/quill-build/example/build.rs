fn main() {
    quill_build::Stubs::new().include("idl").rust(["idl/bank.idl"]);
}
